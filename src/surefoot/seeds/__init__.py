"""One run per seed, side by side, and what they have in common."""
