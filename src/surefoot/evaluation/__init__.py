"""Evaluation of policies with fixed seeds."""
