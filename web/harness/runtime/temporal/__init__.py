"""Runs as Temporal workflows: the workflow decides by the loop, workers perform and write down."""
