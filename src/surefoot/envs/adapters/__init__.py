"""Adapters: what other libraries call environments, as rows that step together."""
