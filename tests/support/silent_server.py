"""A program that reads and never answers, and keeps a child. Writes both process ids to a file."""

from __future__ import annotations

import os
import subprocess
import sys

child = subprocess.Popen([sys.executable, "-S", "-E", "-c", "import time; time.sleep(600)"])
with open(f"{sys.argv[1]}.new", "w") as file:
    file.write(f"{os.getpid()} {child.pid}")
os.replace(f"{sys.argv[1]}.new", sys.argv[1])
for _ in sys.stdin:
    pass
