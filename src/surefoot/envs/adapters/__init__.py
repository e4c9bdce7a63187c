"""Adapters that turn environments of other libraries into rows that step together."""
