"""Agents of Stable-Baselines3."""
