"""Faults planted in either path, as they would be written: verify names the component."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from surefoot.data.records import Rollout
from surefoot.envs.adapters.gymnasium_envs import GymnasiumEnvs
from surefoot.envs.engines.native import NativeEngine
from surefoot.envs.protocol import Slot
from surefoot.learning.gradient import GradientStep
from surefoot.learning.native_learner import NativeLearner
from surefoot.learning.transforms.variance_scaling import VarianceScaling
from surefoot.native.kernels import kernels
from surefoot.policies.memory import scan
from surefoot.policies.native_plan import native_tensors
from surefoot.policies.policy import Policy
from surefoot.rollout import native as native_rollout
from surefoot.rollout.native import NativeCollector
from surefoot.rollout.open_ends import OpenEnds
from surefoot.rollout.rows import Rows
from surefoot.rollout.stepwise import StepwiseCollector
from surefoot.settings.layers import build_config
from surefoot.verification import Report, verify
from tests.verification.sizes import less, only

CARTPOLE = {"env.id": "CartPole-v1", "normalize.obs": True}
PENDULUM = {"env.id": "Pendulum-v1"}


@pytest.fixture(autouse=True)
def _less(monkeypatch: pytest.MonkeyPatch) -> None:
    less(monkeypatch, limits=(23, 7))


def found(settings: dict[str, Any], *checks: str) -> Report:
    """Of the comparison of both paths, and of these checks."""
    with only(*checks):
        return verify(build_config(settings))


def spoil_rollouts(monkeypatch: pytest.MonkeyPatch, spoil: Callable[[NativeCollector, Rollout], None]) -> None:
    """As if the core had written something else into the rollout's memory."""
    collect = NativeCollector.collect

    def spoiled(self: NativeCollector, policy: Policy) -> Rollout:
        rollout = collect(self, policy)
        spoil(self, rollout)
        return rollout

    monkeypatch.setattr(NativeCollector, "collect", spoiled)


@pytest.mark.parametrize("settings", [CARTPOLE, PENDULUM])
def test_without_a_fault_all_is_equal(settings: dict[str, Any]) -> None:
    report = verify(build_config(settings))
    assert report.ok, report.differing


def test_shifted_done_flag(monkeypatch: pytest.MonkeyPatch) -> None:
    def shift(collector: NativeCollector, rollout: Rollout) -> None:
        rollout.terminated.copy_(rollout.terminated.roll(1, 0))

    spoil_rollouts(monkeypatch, shift)
    assert {"flags", "GAE"} <= set(found(CARTPOLE).differing)


def test_final_observation_after_the_reset(monkeypatch: pytest.MonkeyPatch) -> None:
    step = GymnasiumEnvs.step

    def late(self: GymnasiumEnvs, actions: NDArray[Any], slot: Slot) -> None:
        step(self, actions, slot)
        ended = slot.ended
        assert isinstance(self.final_obs, np.ndarray)
        assert isinstance(slot.obs, np.ndarray)
        self.final_obs[ended] = slot.obs[ended]

    monkeypatch.setattr(GymnasiumEnvs, "step", late)
    report = found(PENDULUM, "compare_engines")
    assert {"final observations", "bootstraps", "GAE"} <= set(report.differing)
    assert not {"env dynamics", "flags", "rewards", "values"} & set(report.differing)


def test_both_flags_bootstrapped(monkeypatch: pytest.MonkeyPatch) -> None:
    arrive = StepwiseCollector._arrive

    def both(self: StepwiseCollector, t: int, group: int, open_ends: OpenEnds) -> None:
        arrive(self, t, group, OpenEnds())
        rows, slot = self.rows.env.groups[group], self.rows.buffer.slots[t]
        open_ends.keep(t, rows, slot.ended, self.rows.env.final_obs, self.rows.memory_of(group))

    monkeypatch.setattr(StepwiseCollector, "_arrive", both)
    report = found(CARTPOLE)
    assert "bootstraps" in report.differing
    assert not {"env dynamics", "flags", "values"} & set(report.differing)


def test_moments_that_are_not_those_of_the_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """The readable learner goes on from them: only a comparison after the update finds this."""
    learn = NativeLearner.learn

    def spoiled(self: NativeLearner, *given: Any) -> Any:
        learned = learn(self, *given)
        self.gradient._adam.moments["exp_avg_sq"].mul_(1.001)
        return learned

    monkeypatch.setattr(NativeLearner, "learn", spoiled)
    assert found(CARTPOLE).differing == ("optimizer",)


def test_core_that_bootstraps_both_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    def stray(collector: NativeCollector, rollout: Rollout) -> None:
        rollout.final_value[rollout.terminated] = 1.0

    spoil_rollouts(monkeypatch, stray)
    assert found(CARTPOLE).differing == ("bootstraps",)  # GAE leaves them out


def test_last_value_of_the_wrong_observation(monkeypatch: pytest.MonkeyPatch) -> None:
    def one_too_early(collector: NativeCollector, rollout: Rollout) -> None:
        rollout.last_value.copy_(rollout.value[-1])

    spoil_rollouts(monkeypatch, one_too_early)
    report = found(PENDULUM)
    assert {"bootstraps", "GAE"} <= set(report.differing)
    assert not {"env dynamics", "flags", "values"} & set(report.differing)


def test_env_that_is_never_reset(monkeypatch: pytest.MonkeyPatch) -> None:
    reset = GymnasiumEnvs._reset_env

    def all_but_one(self: GymnasiumEnvs, row: int, seed: int | None) -> tuple[Any, dict[str, Any]]:
        if row == 3 and seed is None:
            return self._envs[row].unwrapped._get_obs(), {}  # type: ignore[attr-defined]
        return reset(self, row, seed)

    monkeypatch.setattr(GymnasiumEnvs, "_reset_env", all_but_one)
    assert {"env dynamics", "flags", "rewards", "engine contract"} <= set(found(PENDULUM, "compare_engines").differing)


def test_stale_normalizer(monkeypatch: pytest.MonkeyPatch) -> None:
    yesterday: dict[str, NDArray[np.float32]] = {}

    def stale(policy: Any) -> dict[str, NDArray[np.float32]]:
        tensors = native_tensors(policy)
        now = {name: tensors[name].copy() for name in tensors if name.endswith((".shift", ".scale"))}
        kept = yesterday or now
        tensors |= {name: kept[name] for name in now}
        yesterday.update(now)
        return tensors

    monkeypatch.setattr(native_rollout, "native_tensors", stale)
    report = found(CARTPOLE)
    assert {"log-probs", "values", "ratio one"} <= set(report.differing)
    assert not {"env dynamics", "policy outputs", "noise"} & set(report.differing)


def test_statistics_that_miss_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    moments = NativeCollector._moments

    def without_last(self: NativeCollector, result: Any) -> Any:
        known = moments(self, result)
        return {key: type(part)(part.count - 1, part.mean, part.var) for key, part in known.items()}

    monkeypatch.setattr(NativeCollector, "_moments", without_last)
    assert found(CARTPOLE).differing == ("normalizer statistics",)


def test_wrong_weight_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "actor_body.trunk.layers.1.weight"

    def transposed(policy: Any) -> dict[str, NDArray[np.float32]]:
        tensors = native_tensors(policy)
        assert tensors[name].shape == (64, 64)
        return tensors | {name: np.ascontiguousarray(tensors[name].T)}

    for module in (native_rollout, __import__("surefoot.verification.outputs", fromlist=["x"])):
        monkeypatch.setattr(module, "native_tensors", transposed)
    report = found(CARTPOLE)
    assert {"policy outputs", "log-probs", "actions", "ratio one"} <= set(report.differing)
    assert not {"env dynamics", "values", "noise"} & set(report.differing)


def test_noise_of_the_wrong_step(monkeypatch: pytest.MonkeyPatch) -> None:
    begin = Rows.begin

    def one_late(self: Rows) -> None:
        begin(self)
        self.first_step, self.step = self.first_step + 1, self.step + 1

    def only_native(collector: NativeCollector, rollout: Rollout) -> None:
        collector.rows.first_step -= 1
        collector.rows.step -= 1

    spoil_rollouts(monkeypatch, only_native)
    monkeypatch.setattr(Rows, "begin", lambda self: (one_late if _is_native(self) else begin)(self))
    assert "actions" in found(CARTPOLE).differing


def _is_native(rows: Rows) -> bool:
    return isinstance(rows.env, NativeEngine)


def test_rollout_that_depends_on_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    def by_thread(collector: NativeCollector, rollout: Rollout) -> None:
        assert isinstance(collector.rows.env, NativeEngine)
        rollout.value.add_(1e-6 * collector.rows.env.core.threads)

    spoil_rollouts(monkeypatch, by_thread)
    assert found(PENDULUM, "compare_threads", "compare_rows").differing == ("thread independence",)


def test_state_that_is_not_saved(monkeypatch: pytest.MonkeyPatch) -> None:
    load = Rows.load_state

    def forgetful(self: Rows, state: dict[str, Any]) -> None:
        forgotten = deepcopy(state)
        forgotten["opening"]["obs"] = torch.zeros_like(forgotten["opening"]["obs"])
        load(self, forgotten)

    monkeypatch.setattr(Rows, "load_state", forgetful)
    assert found(CARTPOLE, "compare_resumed", "compare_elsewhere").differing == ("resume",)


MEMORY = {"env.id": "CartPoleNoVel-v1", "policy.memory": "lstm", "rollout.sequence_length": 8}


def test_with_memory_and_without_a_fault_all_is_equal() -> None:
    report = verify(build_config(MEMORY))
    assert report.ok, report.differing


def test_states_kept_a_step_late(monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = NativeCollector._memory_arrays

    def late(self: NativeCollector, memory: Any) -> dict[str, Any]:
        given = arrays(self, memory)
        return given | {"state_steps": [given["state_steps"][0] + 1]}

    monkeypatch.setattr(NativeCollector, "_memory_arrays", late)
    differing = set(found(MEMORY).differing)
    assert {"memory", "ratio one"} <= differing
    assert not {"env dynamics", "flags", "bootstraps"} & differing


def test_memory_that_a_rollout_does_not_hand_on(monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = NativeCollector._memory_arrays

    def forgetful(self: NativeCollector, memory: Any) -> dict[str, Any]:
        for part in memory:
            part.zero_()
        return arrays(self, memory)

    monkeypatch.setattr(NativeCollector, "_memory_arrays", forgetful)
    assert {"memory", "values"} <= set(found(MEMORY).differing)


@pytest.mark.parametrize("fault", ["weights", "rows", "memory"])
def test_other_policies_that_act_wrongly(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the learner's weights, in the wrong rows, or with a memory that is not their own."""
    synced, arrays = NativeCollector._synced_others, NativeCollector._arrays_of_rows

    def spoiled(self: NativeCollector) -> Any:
        others: Any = synced(self)
        if fault == "weights":
            return [(number, self._policy, memory, followed) for number, _, memory, followed in others]
        if fault == "memory":
            return [(number, core, [part.copy() for part in parts], not f) for number, core, parts, f in others]
        return others

    def shifted(self: NativeCollector) -> Any:
        given = arrays(self)
        return given | ({"wanted": [np.roll(given["wanted"][0], 1)]} if fault == "rows" and "wanted" in given else {})

    monkeypatch.setattr(NativeCollector, "_synced_others", spoiled)
    monkeypatch.setattr(NativeCollector, "_arrays_of_rows", shifted)
    assert found(MEMORY if fault == "memory" else CARTPOLE).differing == ("other policies",)


@pytest.mark.parametrize("weights", ["weight_hh_l0", "bias_hh_l0", "weight_ih_l0"])
def test_recurrent_weights_laid_out_wrongly(weights: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def swapped(policy: Any) -> dict[str, Any]:
        tensors = native_tensors(policy)
        for name in tensors:
            if name.endswith(weights):
                tensors[name] = np.ascontiguousarray(np.roll(tensors[name], len(tensors[name]) // 4, axis=0))
        return tensors

    monkeypatch.setattr(native_rollout, "native_tensors", swapped)
    assert {"memory", "values"} <= set(found(MEMORY).differing)


KERNELS = {"train.learner": "torch"}
"""The learner that uses single kernels of the core."""


def test_gradients_through_time_gone_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    backward = scan._CoreLSTM.backward

    def cut(context: Any, *gradients: Any) -> Any:
        grad_gates, *others = backward(context, *gradients)
        return (grad_gates * 0.9, *others)

    monkeypatch.setattr(scan._CoreLSTM, "backward", staticmethod(cut))
    report = found(MEMORY | KERNELS, "compare_first_step")
    assert {"gradients", "weights"} <= set(report.differing) <= {"gradients", "weights", "losses"}


TANH = {"env.id": "Pendulum-v1"}
RELU = TANH | {"policy.activation": "relu", "policy.hidden": [512, 512]}
"""As wide as the kernels take for this many samples: with the samples at a kink gone, they would not run."""
FIRST_STEP = {("gradients", "first minibatch"), ("gradients", "first minibatch, clipped")}


def differences(report: Report) -> set[tuple[str, str]]:
    return {(part.name, part.compared) for part in report.components if part.verdict == "DIFFERS"}


def an_ordinary_element(gradient: torch.Tensor) -> torch.Tensor:
    """The index of one that is neither large nor small."""
    return gradient.abs().median(0).indices


@pytest.mark.parametrize("settings", [TANH, RELU, MEMORY], ids=["tanh", "relu", "memory"])
def test_one_wrong_element_of_the_native_learner_s_gradient(
    settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    transform = GradientStep.transform

    def wrong(self: GradientStep, knobs: Any, *measured: torch.Tensor) -> Any:
        if kernels() is not None:  # the reference uses none
            self._gradient[an_ordinary_element(self._gradient)] *= 1 + 1e-3
        return transform(self, knobs, *measured)

    monkeypatch.setattr(GradientStep, "transform", wrong)
    less(monkeypatch, rows=8, steps=64, limits=(23, 7))  # with fewer samples, none is at a kink
    assert differences(found(settings, "compare_first_step")) == FIRST_STEP


def test_norm_of_a_gradient_gone_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """The native learner measures a gradient in another way if nothing transforms it, as in most runs."""
    settings = NativeLearner._settings

    def wrong(self: NativeLearner, knobs: Any) -> dict[str, Any]:
        given = settings(self, knobs)
        return given if self.gradient.transforms else given | {"max_norm": 1.1 * given["max_norm"]}

    monkeypatch.setattr(NativeLearner, "_settings", wrong)
    assert ("weights", "after the update") in differences(found(TANH | {"ppo.max_grad_norm": 1e-3}))


FROZEN = TANH | {"optimizer.frozen": ["actor_body", "critic.head"], "normalize.returns": True}
FROZEN |= {"optimizer.clip_grad": "apart", "ppo.max_grad_norm": 1e-2}


def test_frozen_parameters_and_clips_apart_without_a_fault_are_equal() -> None:
    report = found(FROZEN, "compare_first_step")
    assert report.ok, report.differing
    assert ("weights", "frozen, after the update of the native") in {(p.name, p.compared) for p in report.components}


@pytest.mark.parametrize("whose", ["offsets", "clips"])
def test_a_core_that_freezes_nothing_or_clips_all_together(whose: str, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = GradientStep.native_memory

    def wrong(self: GradientStep) -> dict[str, Any]:
        given = memory(self)
        everything = {name: place.start for name, place in self._layout.items()}
        parts = [(0, len(self._flat), 0)]
        wrongly: dict[str, Any] = {"offsets": everything, "parts": parts} if whose == "offsets" else {"clips": [0, 0]}
        return given | wrongly

    monkeypatch.setattr(GradientStep, "native_memory", wrong)
    compared = "frozen, after the update of the native" if whose == "offsets" else "after the update"
    assert ("weights", compared) in differences(found(FROZEN))


SCALED = TANH | {
    "optimizer.transforms": {"vgs": {"kind": "variance_scaling", "beta": 0.9, "warmup": 3}},
    "ppo.terms": {"kl": {"kind": "kl_penalty", "weight": 0.2}},
    "schedules": {"kl.weight": "kl_penalty", "entropy_coef": "entropy_adaptive"},
}


def test_controllers_and_transforms_without_a_fault_are_equal() -> None:
    report = found(SCALED, "compare_first_step")
    assert report.ok, report.differing
    compared = {(part.name, part.compared) for part in report.components}
    assert {
        ("gradient transforms", f"vgs {entry}, after the update") for entry in ("steps", "mean", "variance")
    } <= compared
    assert ("losses", "kl/loss, update") in compared


def test_native_transform_with_another_decay(monkeypatch: pytest.MonkeyPatch) -> None:
    native = VarianceScaling.native
    monkeypatch.setattr(VarianceScaling, "native", lambda self: native(self) | {"beta": 0.89})
    assert ("gradient transforms", "vgs variance, after the update") in differences(found(SCALED))
