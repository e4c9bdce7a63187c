"""Watching an agent: episodes in a window or in a video."""
