"""Sweeps: many runs with different settings, chosen by Optuna, each a job in a run directory of its own."""
