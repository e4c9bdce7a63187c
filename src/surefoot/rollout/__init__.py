"""Collecting experience: collectors fill rollouts, minibatches serve them to the learner."""
