"""Random settings: each config is refused with a typed error, or trains two iterations."""

import math
import random
from functools import reduce
from pathlib import Path
from typing import Any, get_args

from surefoot.api import PPO
from surefoot.errors import SurefootError
from surefoot.settings.config import Config, known_keys, part_of
from surefoot.settings.layers import build_config
from surefoot.settings.parts import PartsOf, settings_class
from surefoot.settings.registry import Registry
from tests.fuzz.values import ANY

SMALL: dict[str, Any] = {
    "rollout.num_envs": 2,
    "rollout.num_steps": 8,
    "ppo.batch_size": 8,
    "ppo.epochs": 1,
    "policy.hidden": [4],
    "train.eval_episodes": 0,
    "log.tensorboard": False,
    "log.console": "off",
}
ENDLESS: list[Any] = []
ENDLESS += [ENDLESS, ENDLESS]
BOMB = reduce(lambda inner, _: [inner] * 10, range(30), [1])
ENVS = ("CartPole-v1", "Pendulum-v1", "CartPoleNoVel-v1", "Probe-v0", "TMaze-v0")
# What people set, often near a border of what works.
LIKELY: dict[str, tuple[Any, ...]] = {
    "rollout.num_envs": (1, 2, 3, 4),
    "rollout.num_steps": (2, 7, 8, 16),
    "rollout.sequence_length": (1, 3, 8, 100),
    "rollout.engine": ("auto", "local", "native", {"kind": "native"}),
    "rollout.workers": (0, 1, 2, 3),
    "ppo.batch_size": (1, 2, 4, 7, 8, 16, 32),
    "ppo.micro_batch_size": (1, 3, 4, None),
    "ppo.burn_in": (0, 1, 2, 7),
    "ppo.sequence_state": ("stored", "recomputed"),
    "ppo.terms": (
        *({"more": "entropy"}, {"more": {"kind": "value", "weight": 0.1}}, {"a": "surrogate", "b": "entropy"}),
        *({"adversary": {"share": 0.3, "steps": 1}}, {"adversary": {"method": "fgsm", "epsilon": 1e9}}),
    ),
    "policy.hidden": ([], [1], [3, 5], 8, [2] * 7),
    "policy.memory": ("gru", "lstm", {"kind": "gru", "hidden_size": 3, "layers": 2}, "none"),
    "policy.distribution": ("beta", "gaussian", "tanh_gaussian", "categorical", {"kind": "gaussian", "std": "state"}),
    "policy.encoder": ("auto", "mlp", "conv", "identity", {"kind": "mlp", "layers": [3]}),
    "policy.critic_obs": ([], ["x"], [""]),
    "optimizer.lr": (0.0, 1e-8, 1e-3, 1.0, 1e6),
    "optimizer.betas": ((0.0, 0.0), (0.9, 0.999), (1.0, 1.0)),
    "optimizer.transforms": ({"cap": "clip_norm"}, {"cap": {"kind": "clip_norm", "max_norm": 1e-6}}),
    "env.kwargs": ({}, {"x": ENDLESS}, {"x": BOMB}, {"x": 10**5000}, {"x": {1: 2}}, {"x": "\ud800"}, {"x": math.nan}),
    "optimizer.frozen": ([], ["actor"], ["*"], ["critic", "head.*"], "*.bias", ["["], [""], ["encoder"]),
    "optimizer.clip_grad": ("together", "apart"),
    "env.max_episode_steps": (1, 2, 3, 10**9),
    "train.threads": (0, 1, 2, 3),
}


def prepare(folder: Path) -> list[str]:
    """All keys, and some that do not exist."""
    return [*known_keys(), "schedules.lr", "schedules.clip", "hooks.mine", "ppo.nonsense", "nonsense", ""]


def case(pick: random.Random, material: list[str], folder: Path) -> None:
    """Settings in dotted form, in a random order."""
    chosen = {key: _value(pick, key) for key in pick.sample(material, pick.randrange(7))}
    likely = {key: pick.choice(LIKELY[key]) for key in pick.sample(list(LIKELY), pick.randrange(5))}
    settings = {"env.id": pick.choice(ENVS), **SMALL, **likely, **(chosen if pick.random() < 0.6 else {})}
    try:
        config = build_config(settings)
    except SurefootError:
        return
    if _is_large(config):
        return
    try:
        dumped = config.model_dump(mode="json")
        env = {f"env.{key}": value for key, value in dumped.pop("env").items()}
        agent = PPO(env.pop("env.id"), **env, **dumped)
        try:
            agent.learn(2 * config.rollout.size)
        finally:
            agent.close()
    except SurefootError:
        pass


def _value(pick: random.Random, key: str) -> Any:
    section, _, name = key.partition(".")
    part = part_of((section,) if section in ("schedules", "hooks") else (section, name)) if section else None
    if part is not None and pick.random() < 0.7:
        odd = _part(pick, part.package)
        return {"mine": odd} if isinstance(part, PartsOf) and section not in ("schedules", "hooks") else odd
    fields = getattr(Config.model_fields.get(section), "annotation", None)
    known = getattr(fields, "model_fields", {}).get(name)
    words = [word for word in get_args(getattr(known, "annotation", None)) if isinstance(word, str)]
    return pick.choice([pick.choice(words) if words else "auto", *(pick.choice(ANY) for _ in range(3))])


def _part(pick: random.Random, package: str) -> dict[str, Any]:
    """A kind with one or two of its settings at odd values."""
    kind = pick.choice(Registry.of(package).names())
    names = [name for name in settings_class(package, kind).model_fields if name != "kind"]
    return {
        "kind": kind,
        **{name: pick.choice(ANY) for name in pick.sample(names, min(len(names), pick.choice([0, 1, 2])))},
    }


def _is_large(config: Config) -> bool:
    """What would be slow or fill the machine for good reasons; the limits of RAM have tests of their own."""
    sizes = [*config.policy.hidden, config.rollout.size, config.rollout.sequence_length, config.train.threads]
    named = config.model_dump(mode="json")["policy"]
    nested = [value for part in named.values() if isinstance(part, dict) for value in part.values()]
    whole = [value for value in nested if isinstance(value, int)]
    is_large = max([*sizes, *whole, config.rollout.workers, config.rollout.groups]) > 4096
    return is_large or config.ppo.epochs > 20 or config.rollout.engine.kind == "processes" or config.log.wandb
