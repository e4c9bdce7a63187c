"""CleanRL's ppo_continuous_action.py with its default arguments, ported."""

import sys

from surefoot import PPO

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000

agent = PPO(
    "HalfCheetah-v5",  # --env-id
    preset="none",
    seed=1,  # --seed
    num_envs=1,  # --num-envs
    num_steps=2048,  # --num-steps
    lr=3e-4,  # --learning-rate
    schedules={"lr": "linear"},  # --anneal-lr
    gamma=0.99,  # --gamma
    gae_lambda=0.95,  # --gae-lambda
    batch_size=64,  # --num-minibatches 32: 2048 / 32
    epochs=10,  # --update-epochs
    advantage_norm="minibatch",  # --norm-adv
    clip=0.2,  # --clip-coef
    clip_value=0.2,  # --clip-vloss
    entropy_coef=0.0,  # --ent-coef
    value_coef=0.5,  # --vf-coef
    max_grad_norm=0.5,  # --max-grad-norm
    normalize={
        "obs": True,
        "reward": True,
    },  # the wrappers NormalizeObservation and NormalizeReward
)
agent.learn(STEPS)
print(agent.evaluate(episodes=10).mean_reward)
