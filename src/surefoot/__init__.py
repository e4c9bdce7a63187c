"""Surefoot trains reinforcement-learning agents with PPO: correct, fast and without surprises."""
