"""How good a policy is: evaluation with fixed seeds."""
