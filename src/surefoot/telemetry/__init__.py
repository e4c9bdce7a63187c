"""Metrics of a run: names, alerts, consoles and sinks. Never imports torch."""
