"""The steps of runs, and what a person does with a run."""
