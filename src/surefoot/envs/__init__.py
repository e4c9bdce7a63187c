"""Environments: the VecEnv protocol, the engines that step them, and adapters for other libraries' envs."""
