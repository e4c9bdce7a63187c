"""Native envs against Gymnasium's, stepped with the same random actions and without a policy."""

import math
from functools import cache
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from numpy.typing import NDArray

from surefoot.data.specs import ArraySpec, HybridSpec
from surefoot.data.tree import tree_items
from surefoot.envs import native
from surefoot.envs.adapters.pettingzoo_env import is_parallel_env
from surefoot.envs.make import env_factory
from surefoot.envs.native_vector import NativeVectorEnv
from surefoot.envs.protocol import Slot, VecEnv, new_slot, step_all
from surefoot.philox import Stream, derived_seed
from surefoot.settings.config import Config
from surefoot.verification.report import Findings
from surefoot.verification.subject import Subject

STEPS_ALONE = 100
ENVS_ALONE = 2
NAME = "engine contract"
CLOSE = 1e-12


def compare_engines(findings: Findings, subject: Subject, ours: str, reference: str) -> None:
    """Compare everything that a step returns between two engines with the same seed and random actions."""
    with subject.opened(ours) as fast, subject.opened(reference) as slow:
        generator = np.random.default_rng(subject.config.train.seed)
        slots = [new_slot(env.num_rows, env.obs_spec, env.mask_size) for env in (fast, slow)]
        spaces = [(env.obs_spec, env.action_spec, env.mask_size) for env in (fast, slow)]
        findings.count(NAME, "spaces", int(spaces[0] != spaces[1]), 1, "differ")
        for env, slot in zip((fast, slow), slots, strict=True):
            env.reset(slot)
        _compare_slots(findings, slots[0], slots[1], f"resets, {ours}, {reference}")
        for _ in range(subject.config.rollout.num_steps):
            actions = random_actions(generator, fast.action_spec, slots[1])
            for env, slot in zip((fast, slow), slots, strict=True):
                step_all(env, actions, slot)
            _compare_slots(findings, slots[0], slots[1], f"steps, {ours}, {reference}")
            _compare_final(findings, fast, slow, slots[1])


def compare_alone(findings: Findings, config: Config) -> None:
    """Compare native.make with gym.make in float64, with the time limit that the env is registered with."""
    limit = config.env.max_episode_steps
    kwargs = config.env.kwargs | ({} if limit is None else {"max_episode_steps": limit})
    seed, alike = derived_seed(config.train.seed, 0, Stream.EVALUATION), Alike(findings, config.env.id)
    single = [env_factory(config.env.id, config.env)() for _ in range(ENVS_ALONE)]
    if is_parallel_env(single[0]):
        findings.skip(NAME, "envs alone, in float64", "Gymnasium has no envs with several agents")
        return
    many = native.make(config.env.id, ENVS_ALONE, **kwargs)
    generator = np.random.default_rng(config.train.seed)
    many.action_space.seed(config.train.seed)
    obs, _ = many.reset(seed=seed)
    expected = [env.reset(seed=seed + number)[0] for number, env in enumerate(single)]
    alike.compare_obs(obs, expected)
    for _ in range(STEPS_ALONE):
        actions = _single_actions(generator, many)
        obs, reward, terminated, truncated, info = many.step(actions)
        steps = [env.step(action) for env, action in zip(single, actions, strict=True)]
        for number, (_, worth, ended, cut_off, _) in enumerate(steps):
            given = [float(reward[number]), float(terminated[number]), float(truncated[number])]
            alike.compare(np.array(given), np.array([worth, ended, cut_off], np.float64))
            if ended or cut_off:
                alike.compare_obs(_rows(info["final_obs"], number), [steps[number][0]])
        pairs = zip(single, steps, strict=True)
        alike.compare_obs(obs, [env.reset()[0] if step[2] or step[3] else step[0] for env, step in pairs])
    many.close()
    for env in single:
        env.close()


class Alike:
    """Compares single envs bit for bit, or within a tolerance where numpy rounds differently on this machine."""

    def __init__(self, findings: Findings, env_id: str) -> None:
        self._findings, self._tolerance = findings, float64_tolerance(env_id)

    def compare(self, ours: NDArray[Any], reference: NDArray[Any]) -> None:
        """Compare one array of all envs."""
        arrays = NAME, "envs alone, in float64", _tensor(ours), _tensor(reference)
        if self._tolerance:
            self._findings.within(*arrays, self._tolerance)
        else:
            self._findings.bits(*arrays)

    def compare_obs(self, obs: Any, expected: list[Any]) -> None:
        """Compare the observations of all envs, key by key."""
        for key, leaf in tree_items(obs):
            rows = [row[key] if key else row for row in expected]
            self.compare(np.asarray(leaf).reshape(len(rows), -1), np.stack(rows).reshape(len(rows), -1))


def random_actions(generator: np.random.Generator, spec: ArraySpec, slot: Slot) -> NDArray[Any]:
    """Random actions from the whole action space that respect the action masks."""
    rows, mask, first, pieces = len(slot.reward), slot.action_mask, 0, []
    for leaf in spec.leaves:
        allowed = np.ones((rows, leaf.num_choices), bool) if mask is None else mask[:, first : first + leaf.num_choices]
        pieces.append(_random_actions(generator, leaf, allowed))
        first += leaf.num_choices
    if isinstance(spec, HybridSpec):
        return np.concatenate([piece.reshape(rows, -1) for piece in pieces], axis=1).astype(spec.dtype)
    return pieces[0]


def _random_actions(generator: np.random.Generator, spec: ArraySpec, allowed: NDArray[np.bool_]) -> NDArray[Any]:
    rows = len(allowed)
    if spec.kind == "box":
        low, high = (np.clip(bound, -3, 3) for bound in spec.bounds())
        return generator.uniform(low, high, (rows, *spec.shape)).astype(np.float32)
    if spec.kind == "multi_binary":
        return ((generator.random((rows, spec.size)) < 0.5) & allowed).astype(np.int64).reshape(rows, *spec.shape)
    chosen, edge = [], 0
    for size, start in zip(spec.sizes, spec.start, strict=True):
        keys = np.where(allowed[:, edge : edge + size], generator.random((rows, size)), -1.0)
        chosen.append(keys.argmax(1) + start)
        edge += size
    return np.stack(chosen, 1).reshape(rows, *spec.shape)


def _single_actions(generator: np.random.Generator, env: NativeVectorEnv) -> Any:
    actions = env.action_space.sample()
    space = env.single_action_space
    if isinstance(space, gym.spaces.Box) and not space.is_bounded():
        return generator.normal(size=actions.shape).astype(space.dtype)
    return actions


def _compare_slots(findings: Findings, ours: Slot, reference: Slot, what: str) -> None:
    for (_, leaf), (_, expected) in zip(tree_items(ours.obs), tree_items(reference.obs), strict=True):
        findings.bits(NAME, what, torch.from_numpy(leaf), torch.from_numpy(expected))
    for name in ("reward", "terminated", "truncated", "valid", "action_mask"):
        given, expected = getattr(ours, name), getattr(reference, name)
        if given is not None or expected is not None:
            findings.bits(NAME, what, _tensor(given), _tensor(expected))


def _compare_final(findings: Findings, fast: VecEnv, slow: VecEnv, slot: Slot) -> None:
    rows = np.flatnonzero(slot.ended)
    for (_, leaf), (_, expected) in zip(tree_items(fast.final_obs), tree_items(slow.final_obs), strict=True):
        if len(rows):
            findings.bits("final observations", "of ended episodes", _tensor(leaf[rows]), _tensor(expected[rows]))


def _rows(obs: Any, row: int) -> Any:
    return {key: leaf[row : row + 1] for key, leaf in obs.items()} if isinstance(obs, dict) else obs[row : row + 1]


def _tensor(array: NDArray[Any] | None) -> torch.Tensor:
    return torch.empty(0) if array is None else torch.from_numpy(np.ascontiguousarray(array))


@cache
def float64_tolerance(env_id: str) -> float:
    """0 for equality to the last bit, or a tolerance where numpy on this machine fuses or vectorizes operations.

    numpy chooses its code by the processor: where np.sin and np.cos of an array are vectorized, or the BLAS that
    np.linalg.norm calls fuses multiplications with additions, the last bit can differ, but nothing else.
    """
    samples = np.random.default_rng(0).normal(size=(2_000, 3))
    sines = all((np.sin(row) == [math.sin(x) for x in row]).all() for row in samples[:, :2])
    cosines = all((np.cos(row) == [math.cos(x) for x in row]).all() for row in samples[:, :2])
    norms = all(np.linalg.norm(row) == math.sqrt(x * x + y * y + z * z) for row in samples for x, y, z in [row])
    powers = all(float(x**2) == math.pow(x, 2) for x in samples[:, 0])
    exact = {
        "InvertedDoublePendulum-v5": sines and cosines and powers,
        "Reacher-v5": sines and cosines and norms,
        "Pusher-v5": norms,
    }
    return 0.0 if exact.get(env_id, True) else CLOSE
