"""A recurrent policy: CartPole without velocities, which a policy without memory cannot balance."""

import sys

import gymnasium as gym

from surefoot import PPO

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 16_000

for memory in ("none", "lstm"):
    agent = PPO("CartPoleNoVel-v1", memory=memory, epochs=5, lr=2e-3, seed=1, eval_episodes=0)
    before = agent.evaluate(episodes=10).mean_reward
    after = agent.learn(STEPS).evaluate(episodes=10).mean_reward
    print(f"memory {memory}: return before {before:.1f}, after {after:.1f}")

# Acting step by step: the state of the memory goes in and comes out; None at the start of an episode.
env = gym.make("CartPoleNoVel-v1")
obs, _ = env.reset(seed=0)
state, total, is_over = None, 0.0, False
while not is_over:
    action, state = agent.predict(obs, state)
    obs, reward, terminated, truncated, _ = env.step(action)
    total, is_over = total + reward, terminated or truncated
print(f"one episode, step by step: {total:.0f}")
