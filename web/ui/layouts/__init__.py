"""How the content of a file is laid out, in a process of its own."""
