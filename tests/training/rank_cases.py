"""Run by every rank: trains each case alone and together, and writes what both learned for the test that reads it."""

from contextlib import closing
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import torch

from surefoot import ArraySpec, Hook, Minibatch, Rollout, Term, TermLoss
from surefoot.cli.main import end_with_others
from surefoot.compose import Specs, build_env, build_policy, build_trainer
from surefoot.machine.ranks import ALONE, Ranks, together
from surefoot.settings.layers import build_config
from surefoot.training.hook_group import HookGroup
from surefoot.training.trainer import Trainer
from tests.envs.teams import TeamEnv
from tests.training.rank_runs import all_runs

parallel_env = partial(TeamEnv, masks="obs")
UPDATES = 10
SMALL = {
    "rollout.num_envs": 5,
    "rollout.num_steps": 24,
    "ppo.epochs": 3,
    "ppo.batch_size": 30,
    "policy.hidden": [16],
    "train.steps": 5 * 24 * UPDATES,
}
SCALED = {"normalize.obs": True, "normalize.returns": True, "optimizer.lr": 1e-3}
TEAM = {"env.id": "pettingzoo:tests.training.rank_cases", "normalize.obs": True}
"""Agents that join late and die early, with action masks: 9 rows."""
CASES: dict[str, dict[str, Any]] = {
    "cartpole": {"env.id": "CartPole-v1", "ppo.advantage_norm": "minibatch", "ppo.micro_batch_size": 10},
    "cartpole torch": {"env.id": "CartPole-v1", "train.learner": "torch", "ppo.advantage_norm": "minibatch"},
    "target kl": {"env.id": "CartPole-v1", "ppo.target_kl": 0.01, "ppo.epochs": 8, "optimizer.lr": 3e-3},
    "target kl torch": {
        "env.id": "CartPole-v1",
        "ppo.target_kl": 0.01,
        "ppo.epochs": 8,
        "optimizer.lr": 3e-3,
        "train.learner": "torch",
    },
    "pendulum": {"env.id": "Pendulum-v1", **SCALED},
    "pendulum torch": {
        "env.id": "Pendulum-v1",
        **SCALED,
        "train.learner": "torch",
        "rollout.engine": "local",
        "normalize.return_stats": "previous",
        "optimizer.frozen": ["head.log_std", "critic_body"],
        "optimizer.clip_grad": "apart",
    },
    "reward scaling": {
        "env.id": "Pendulum-v1",
        "normalize.obs": True,
        "normalize.reward": True,
        "optimizer.transforms": {"scaling": {"kind": "variance_scaling"}},
        "optimizer.frozen": ["actor_body"],
        "optimizer.clip_grad": "apart",
    },
    "lstm": {
        "env.id": "RepeatPrevious-v0",
        "policy.memory": {"kind": "lstm", "hidden_size": 8},
        "rollout.sequence_length": 8,
        "ppo.sequence_state": "recomputed",
        "ppo.advantage_norm": "minibatch",
    },
    "lstm torch": {
        "env.id": "RepeatPrevious-v0",
        "policy.memory": {"kind": "lstm", "hidden_size": 8},
        "rollout.sequence_length": 8,
        "ppo.burn_in": 4,
        "train.learner": "torch",
    },
    "quantiles": {"env.id": "CartPole-v1", "policy.critic": {"kind": "quantile", "num_quantiles": 8}},
    "one sample": {"env.id": "CartPole-v1", "ppo.batch_size": 1, "ppo.epochs": 1, "rollout.num_steps": 5},
    "one sample torch": {
        "env.id": "CartPole-v1",
        "ppo.batch_size": 1,
        "ppo.epochs": 1,
        "rollout.num_steps": 5,
        "train.learner": "torch",
    },
    "agents and masks": {"rollout.num_envs": 3, "ppo.batch_size": 24, **TEAM},
    "actors and labels torch": {
        "env.id": "CartPole-v1",
        "ppo.terms": {"near": {"kind": "tests.training.rank_cases:Near"}},
        "train.learner": "torch",
    },
    "agents and masks torch": {"rollout.num_envs": 3, "ppo.batch_size": 24, "train.learner": "torch", **TEAM},
}


class Label(Hook):
    """Labels every step, and also says who acted."""

    def extras(self) -> dict[str, ArraySpec]:
        return {"label": ArraySpec("box", (), "int64")}

    def after_rollout(self, rollout: Rollout) -> None:
        rollout.extras["label"].copy_(rollout.obs[..., 0] > 0)


class Near(Term):
    """Learns the labels in the rows of the learning policy."""

    def loss(self, minibatch: Minibatch) -> TermLoss:
        extras = minibatch.batch.extras
        loss = -minibatch.output.distribution.log_prob(extras["label"]).mean()
        return TermLoss(loss, {"label": extras["label"].float().mean(), "actor": extras["actor"].float().mean()})


def join(trainer: Trainer) -> None:
    """A copy of the policy acts in the first and the last of all rows, wherever they are; a hook labels all."""
    trainer.hooks = HookGroup({"label": Label()})
    rows = trainer.collector.rows
    rows.actors.add("copy", deepcopy(trainer.policy))
    own = (row - rows.env.first_row for row in (0, 4))
    rows.actors.assign([row for row in own if 0 <= row < rows.env.num_rows], "copy")


def trained(settings: dict[str, Any], ranks: Ranks) -> dict[str, Any]:
    """Weights and statistics before and after, and what the updates measured."""
    config = build_config(SMALL | settings)
    with closing(build_env(config, ranks=ranks)) as env:
        policy = build_policy(config, Specs(env.obs_spec, env.action_spec))
        trainer = build_trainer(config, env, policy, ranks)
        if config.ppo.terms:
            join(trainer)
        before = torch.cat([parameter.detach().flatten() for parameter in policy.parameters()])
        sent = ranks.bytes_sent
        reports = [trainer.iterate() for _ in range(UPDATES)]
        return {
            "learner": trainer.learner.description,
            "before": before,
            "after": torch.cat([parameter.detach().flatten() for parameter in policy.parameters()]),
            "statistics": dict(policy.named_buffers()),
            "scorer": trainer.scorer.state(),
            "learned": [vars(report.learned) for report in reports],
            "steps": trainer.progress.step,
            "recent": [(episode.total_reward, episode.length) for episode in reports[-1].stats.recent],
            "bytes": ranks.bytes_sent - sent,
        }


def main(folder: Path) -> None:
    """Everything for one rank."""
    with together() as ranks:
        for index, (name, settings) in enumerate(CASES.items()):
            if index % ranks.size == ranks.rank:
                torch.save(trained(settings, ALONE), folder / f"{name}.alone.pt")
            torch.save(trained(settings, ranks), folder / f"{name}.{ranks.rank}.pt")
        all_runs(folder, ranks)
    end_with_others(0)
