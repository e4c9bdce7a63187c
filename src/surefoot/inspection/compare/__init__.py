"""Comparison of groups of runs: aggregate scores with intervals, as a table and as a page."""
