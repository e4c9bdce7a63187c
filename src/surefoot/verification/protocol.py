"""Checks of the protocol, for envs and policies without a native implementation."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from gymnasium.vector import VectorEnv

from surefoot.data.tree import tree_items
from surefoot.envs.adapters.pettingzoo_env import is_parallel_env
from surefoot.envs.engines import Engine
from surefoot.envs.library import is_library, library_factory
from surefoot.envs.make import ENVPOOL, env_factory
from surefoot.envs.protocol import new_slot, step_all
from surefoot.envs.protocol.checks import check_step
from surefoot.errors import EnvError, SurefootError
from surefoot.learning.native_learner import NativeLearner
from surefoot.settings.layers import rebuilt
from surefoot.verification.contract import random_actions
from surefoot.verification.custom_env import agents_in_one_array, broken_promises, copying
from surefoot.verification.legs import Leg, Traveler
from surefoot.verification.outputs import compare_ratio
from surefoot.verification.plain import Plain
from surefoot.verification.report import Findings
from surefoot.verification.resuming import compare_resume
from surefoot.verification.subject import Subject
from surefoot.verification.updates import compare_learners

LEGS = 2
ENOUGH_CUTS = 20
PATIENCE_S = 5.0
"""Seconds to wait for truncated episodes."""
ALIASING, SEEDING, PROTOCOL, FINAL, AGREE = (
    "observation aliasing",
    "seeding",
    "protocol",
    "final observations",
    "engines agree",
)


def check_protocol(findings: Findings, subject: Subject, engine: str) -> None:
    """Check everything that can be checked without a second implementation of the env and the policy."""
    try:
        _check_spaces(findings, subject)
        _check_endings(findings, subject, engine)
        legs = journey(subject, engine)
    except EnvError as error:
        findings.broken(PROTOCOL, "resets and steps", str(error))
        return
    plain = Plain(subject.config)
    for leg in legs:
        compare_ratio(findings, leg, subject.config.ppo)
        plain.compare(findings, leg)
    _compare_learners(findings, subject, engine)
    if not _check_seeding(findings, subject, engine, legs):
        for name in (ALIASING, "resume", AGREE):
            findings.uncovered(name, "rollouts", "the same seed does not give the same rollout")
        return
    _check_aliasing(findings, subject, engine, legs)
    compare_resume(findings, subject, engine)
    _check_engines(findings, subject, legs)


def journey(subject: Subject, engine: str, legs: int = LEGS) -> list[Leg]:
    """The first rollouts of a new run, with an update after each."""
    with subject.opened(engine) as env:
        traveler = Traveler(subject.config, env, subject.new_policy(env))
        return [traveler.go() for _ in range(legs)]


def _compare_learners(findings: Findings, subject: Subject, engine: str) -> None:
    """Compare the native learner, if training uses it, with the readable one, which learns from the same rollouts."""
    config = subject.config
    with subject.opened(engine) as env:
        fast = Traveler(config, env, subject.new_policy(env))
        if not isinstance(fast.learner, NativeLearner):
            findings.uncovered("learner", "native against readable", fast.learner.description)
            return
        slow, plain = Traveler(config, env, subject.new_policy(env), is_readable=True), Plain(config)
        for leg in range(LEGS):
            ours = fast.go()
            reference = slow.learn_from(ours)
            compare_learners(findings, fast, ours, reference, config, leg)
            plain.compare(findings, reference)


def maker(subject: Subject) -> Callable[[], Any] | None:
    """A function that makes one env without Surefoot's adapters; None for EnvPool, which has no single envs."""
    source, config = subject.source, subject.config.env
    if source is not None:
        return source if callable(source) and not subject.is_fixed else lambda: source
    if config.id.startswith(ENVPOOL):
        return None
    if is_library(config.id) and not library_factory(config.id).has_twin:
        return None
    return env_factory(config.id, config)


def _check_spaces(findings: Findings, subject: Subject) -> None:
    make = maker(subject)
    env = None if make is None else make()
    if not isinstance(env, gym.Env):
        return
    try:
        problems = broken_promises(env, subject.config.train.seed)
    except EnvError:
        raise
    except Exception as error:
        raise EnvError(f"the env raised {type(error).__name__}: {error}") from error
    finally:
        if not subject.is_fixed:
            env.close()
    for problem in problems:
        findings.broken(PROTOCOL, "shapes and types", problem)
    if not problems:
        findings.fine(PROTOCOL, "shapes and types")


def _check_endings(findings: Findings, subject: Subject, engine: str) -> None:
    """Step with random actions until enough episodes were truncated, checking everything that the env returns."""
    cuts = unmoved = step = 0
    deadline, generator = time.monotonic() + PATIENCE_S, np.random.default_rng(subject.config.train.seed)
    with subject.opened(engine) as env:
        slot = new_slot(env.num_rows, env.obs_spec, env.mask_size)
        env.reset(slot)
        check_step(env, slot, 0)
        while cuts < ENOUGH_CUTS and time.monotonic() < deadline:
            step += 1
            step_all(env, random_actions(generator, env.action_spec, slot), slot)
            check_step(env, slot, step)
            for row in np.flatnonzero(slot.truncated & ~slot.terminated):
                cuts += 1
                pairs = zip(tree_items(env.final_obs), tree_items(slot.obs), strict=True)
                unmoved += all(np.array_equal(final[row], first[row]) for (_, final), (_, first) in pairs)
    findings.fine(PROTOCOL, "resets and steps", f"{step:,} steps of {env.num_rows} rows")
    what = "of truncated episodes"
    if cuts == 0:
        findings.uncovered(FINAL, what, f"no episode was truncated in {step:,} steps of {env.num_rows} rows")
    elif unmoved == cuts:
        findings.broken(
            FINAL,
            what,
            f"all {cuts} equal the first observation of the next episode; return the last observation before the reset",
        )
    else:
        findings.fine(FINAL, what, f"{cuts} seen")


def _check_seeding(findings: Findings, subject: Subject, engine: str, legs: list[Leg]) -> bool:
    again = journey(subject, engine)
    repeats = _compare_legs(findings, SEEDING, "same seed", again, legs)
    other = replace(subject, config=rebuilt(subject.config, {"train.seed": subject.config.train.seed + 1}))
    (leg,) = journey(other, engine, legs=1)
    alike = all(torch.equal(leg.tensors[name], legs[0].tensors[name]) for name in leg.tensors)
    if alike:
        findings.broken(
            SEEDING, "another seed", "the rollout does not change with the seed; use the seed that reset() is given"
        )
    else:
        findings.fine(SEEDING, "another seed")
    return repeats


def _check_aliasing(findings: Findings, subject: Subject, engine: str, legs: list[Leg]) -> None:
    what, make = "copied or not", maker(subject)
    if make is None:
        findings.uncovered(ALIASING, what, "these envs have no single env in Python")
        return
    if isinstance(subject.source, VectorEnv) or subject.is_fixed:
        copied: Any = copying(make())
    else:
        copied = _Copies(make)
    _compare_legs(findings, ALIASING, what, journey(replace(subject, source=copied), engine="local"), legs)
    env = make()
    if is_parallel_env(env):
        observations = env.reset(seed=subject.config.train.seed)
        shared = agents_in_one_array(observations[0] if isinstance(observations, tuple) else observations)
        if shared is None:
            findings.fine(ALIASING, "arrays of agents")
        else:
            findings.broken(
                ALIASING,
                "arrays of agents",
                f"{shared[0]} and {shared[1]} are given the same array; return a separate array for each agent",
            )
    if not subject.is_fixed:
        env.close()


class _Copies:
    """A factory of envs whose observations are copied."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    def __call__(self) -> Any:
        return copying(self._make())


def _check_engines(findings: Findings, subject: Subject, legs: list[Leg]) -> None:
    what = "local and processes"
    if is_library(subject.config.env.id) and maker(subject) is None:
        findings.uncovered(AGREE, what, "there is no Python twin beside the library")
        return
    with subject.opened("local") as env:
        steps_itself = not isinstance(env, Engine)
    if subject.is_fixed or steps_itself:
        why = (
            "EnvPool steps its envs itself"
            if steps_itself and not subject.is_fixed
            else "an existing env cannot be moved to another process; pass a function that makes it"
        )
        findings.uncovered(AGREE, what, why)
        return
    try:
        elsewhere = journey(subject.sized(rollout__workers=2), "processes")
    except SurefootError as error:
        findings.broken(AGREE, what, str(error))
        return
    _compare_legs(findings, AGREE, what, elsewhere, legs)


def _compare_legs(findings: Findings, name: str, what: str, ours: list[Leg], reference: list[Leg]) -> bool:
    """Compare all tensors of all legs bit for bit; returns whether they are equal."""
    before = findings.has_broken(name)
    for leg, expected in zip(ours, reference, strict=True):
        for field, tensor in leg.tensors.items():
            findings.bits(name, what, torch.flatten(tensor), torch.flatten(expected.tensors[field]))
    return before == findings.has_broken(name)
