"""How fast, and how large: measured by hand with `python -m tests.bench`."""
