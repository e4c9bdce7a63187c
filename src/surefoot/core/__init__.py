"""Foundations of the package: records, specs, config, counter-based random numbers, registry and errors."""
