"""A script for Stable-Baselines3, ported: VecNormalize, a callback, evaluation, saving, acting."""

import sys

import gymnasium as gym

from surefoot import PPO, Hook

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000


class StopWhenSolved(Hook):
    """SB3: a BaseCallback whose _on_step returns False."""

    def after_iteration(self, report):
        recent = report.stats.recent
        if recent and sum(episode.total_reward for episode in recent) / len(recent) > -180:
            self.run.stop("solved")


# SB3: env = VecNormalize(make_vec_env("Pendulum-v1", n_envs=4), gamma=0.9)
#      model = PPO("MlpPolicy", env, n_steps=1024, gamma=0.9, learning_rate=1e-3, n_epochs=10,
#                  clip_range=0.2, seed=1, policy_kwargs={"net_arch": [64, 64]})
agent = PPO(
    "Pendulum-v1",
    preset="none",
    num_envs=4,
    num_steps=1024,
    gamma=0.9,
    lr=1e-3,
    epochs=10,
    clip=0.2,
    advantage_norm="minibatch",
    hidden=[64, 64],
    normalize={"obs": True, "reward": True},
    seed=1,
)
# SB3: model.learn(total_timesteps=STEPS, callback=StopWhenSolved())
agent.learn(STEPS, hooks=[StopWhenSolved()])
# SB3: mean, std = evaluate_policy(model, env, n_eval_episodes=20)
evaluation = agent.evaluate(episodes=20)
print(f"{evaluation.mean_reward:.1f} ± {evaluation.std_reward:.1f}")
# SB3: model.save("agent"); env.save("vec_normalize.pkl"). Here one file has everything.
agent.save("agent.safetensors")

agent = PPO.load("agent.safetensors")
env = gym.make("Pendulum-v1")
obs, _ = env.reset(seed=0)
for _ in range(200):
    action, _ = agent.predict(obs)  # observations are normalized inside
    obs, reward, terminated, truncated, info = env.step(action)
