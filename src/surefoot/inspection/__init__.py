"""Inspection of runs: their records, diagnosis and HTML reports. Never imports torch."""
