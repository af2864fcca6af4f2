"""Plain data that every other layer shares: messages, events, results, configuration, errors.

Nothing here does I/O, reads a clock or draws a random number; ids and times are handed in.
"""
