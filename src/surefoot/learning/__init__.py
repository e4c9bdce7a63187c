"""Learning from a rollout: advantages, losses, the learner, normalizers, schedules, the optimizer."""
