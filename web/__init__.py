"""harness-web: a browser chat whose agent harness runs on the server."""

__version__ = "0.1.0"
