"""A policy is encoders -> (memory) -> a distribution head and a critic; each kind is a folder of one-file variants."""
