"""The commands of `harness-web`, one module each.

A module offers `add_parser(commands)`, which describes its options, and a function that runs it and
returns the exit code. Nothing heavy is imported before a command runs, so that help comes at once.
"""
