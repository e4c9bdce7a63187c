"""Benchmarks: each subject runs in a separate process, with interleaved repeats; results include their spread."""
