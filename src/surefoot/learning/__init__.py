"""Learning from rollouts: estimators, losses, the learner, normalizers, schedules and the optimizer."""
