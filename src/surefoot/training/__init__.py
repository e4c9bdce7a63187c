"""Runs: the trainer, what attaches to it, checkpoints and the run directory."""
