"""Surefoot's own tasks in Python: references of native environments, and tasks that need memory."""
