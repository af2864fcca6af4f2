"""The steps of a run that was written down: shown, and as a file."""
