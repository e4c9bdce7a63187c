"""The usual settings of RSL-RL for legged robots, ported, on Gymnasium's Ant."""

import math
import sys

from surefoot import PPO

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000_000

agent = PPO(
    "Ant-v5",
    preset="none",
    seed=1,
    num_envs=64,  # thousands on a GPU; tens on a CPU
    num_steps=24,  # num_steps_per_env
    epochs=5,  # num_learning_epochs
    batch_size=384,  # num_mini_batches 4: 64 x 24 / 4
    clip=0.2,  # clip_param
    clip_value=0.2,  # use_clipped_value_loss
    gamma=0.99,
    gae_lambda=0.95,  # lam
    value_coef=1.0,  # value_loss_coef
    entropy_coef=0.005,
    lr=1e-3,  # learning_rate
    schedules={"lr": {"kind": "kl_adaptive", "desired_kl": 0.01}},  # schedule adaptive, desired_kl
    max_grad_norm=1.0,
    advantage_norm="rollout",  # normalize_advantage_per_mini_batch False
    hidden=[128, 128],  # actor_hidden_dims and critic_hidden_dims
    activation="elu",
    distribution={"kind": "gaussian", "log_std": math.log(0.5)},  # init_noise_std
    normalize={"obs": True, "returns": True},  # empirical_normalization
)
agent.learn(STEPS)
print(agent.evaluate(episodes=10).mean_reward)
