"""A policy is encoders -> (memory) -> a distribution head and a critic; each has a directory with a file per kind."""
