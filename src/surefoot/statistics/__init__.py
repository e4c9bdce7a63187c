"""Statistics of returns: risk figures and aggregates over runs."""
