"""Several seeds: one run says little about a setting, because runs differ by their seeds alone."""

import statistics
import sys

from surefoot import PPO

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
SEEDS = range(4)


def score(seed, **settings):
    """Train one agent and return the mean of 20 evaluation episodes, which are the same for every agent."""
    agent = PPO("CartPole-v1", seed=seed, eval_episodes=0, **settings)
    agent.learn(STEPS)
    return agent.evaluate(episodes=20, seed=1000).mean_reward


for lr in (1e-4, 3e-3):
    scores = [score(seed, lr=lr) for seed in SEEDS]
    mean, spread = statistics.fmean(scores), statistics.stdev(scores)
    extremes = f"worst {min(scores):.1f}, best {max(scores):.1f}"
    print(f"lr {lr:g}: {mean:.1f} ± {spread:.1f} over {len(scores)} seeds, {extremes}")
