"""Rollouts: collectors fill them, minibatches pass them to the learner."""
