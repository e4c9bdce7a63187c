"""What travels through training: records, specs of observations and actions, and their running moments."""
