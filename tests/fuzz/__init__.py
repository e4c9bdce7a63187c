"""Attacks with random input, bounded by time and repeatable case by case: `make fuzz` (docs/reliability.md)."""
