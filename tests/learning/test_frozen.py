"""Frozen parameters keep every bit, in both learners, from whenever they are frozen."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from surefoot import PPO, Hook
from surefoot.cli.main import main
from surefoot.data.records import Knobs
from surefoot.errors import CheckpointError, ConfigError, PolicyError
from surefoot.learning.frozen import Frozen
from surefoot.learning.gradient import GradientStep
from surefoot.settings.config import OptimizerConfig
from surefoot.storage.saved import Saved
from tests.learning.made_up import CHOICES, SEVEN, THREE_ACTIONS, Side, both, config_of, knobs_of
from tests.learning.test_native_learner import GRU, POLICIES, TOLERANCE, learn_apart
from tests.learning.test_variance_scaling import EVERY_KNOB

KNOBS = Knobs(lr=1e-2)
HIDDEN = "actor_body.trunk.layers.0.weight"
SMALL: dict[str, Any] = {"num_envs": 4, "num_steps": 16, "batch_size": 32, "epochs": 2, "log.console": "off"}
SMALL |= {"schedules.lr": "constant", "schedules.clip": "constant"}
ITERATION = 64
EAGER: dict[str, Any] = {"optimizer.algorithm": "adamw", "optimizer.weight_decay": 0.1}
SCALED: dict[str, Any] = {"optimizer.transforms": {"vgs": {"kind": "variance_scaling", "warmup": 1}}}


def network() -> nn.Sequential:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))


@pytest.mark.parametrize("algorithm", ["adam", "adamw"])
def test_frozen_and_thawed_parameters_step_as_those_of_torch(algorithm: str) -> None:
    """Each parameter counts its own steps, as in torch: the first steps after a thaw would be three times too large."""
    ours, theirs = network(), network()
    config = OptimizerConfig(algorithm=algorithm, weight_decay=0.1)  # type: ignore[arg-type]
    gradient = GradientStep(ours, config, 0.05)
    kind = torch.optim.AdamW if algorithm == "adamw" else torch.optim.Adam
    optimizer = kind(theirs.parameters(), lr=KNOBS.lr, eps=config.adam_eps, weight_decay=0.1)
    frozen = {0: ["2.weight"], 3: ["0.weight", "0.bias"], 6: ["0.bias"], 9: ["2.bias"]}
    generator = torch.Generator().manual_seed(1)
    for step in range(12):
        for module in (ours, theirs):
            for name, parameter in module.named_parameters():
                parameter.requires_grad_(name not in frozen[step // 3 * 3])
        inputs = torch.randn(5, 3, generator=generator)
        optimizer.zero_grad()
        theirs(inputs).square().mean().backward()
        norm = torch.nn.utils.clip_grad_norm_(theirs.parameters(), 0.05)
        optimizer.step()
        gradient.add(ours(inputs).square().mean())
        assert gradient.step(KNOBS)["grad_norm"].item() == pytest.approx(norm.item(), rel=1e-5)
        torch.testing.assert_close(list(ours.parameters()), list(theirs.parameters()), atol=1e-6, rtol=1e-6)


def freeze(side: Side, *names: str) -> None:
    for name, parameter in side.policy.named_parameters():
        parameter.requires_grad_(not any(name.startswith(one) for one in names))


CASES: dict[str, tuple[Any, Any, dict[str, Any], tuple[str, ...]]] = {
    "a layer": (SEVEN, CHOICES, EAGER, ("actor_body",)),
    "the critic": (SEVEN, THREE_ACTIONS, EAGER, ("critic",)),
    "log_std": (SEVEN, THREE_ACTIONS, SCALED, ("head.log_std",)),
    "scaled": (SEVEN, CHOICES, SCALED, ("actor_body", "critic.head.bias")),
    "memory": (SEVEN, CHOICES, {"policy.memory": GRU}, ("actor_body.memory", "critic_body.memory")),
    "apart": (SEVEN, CHOICES, {"optimizer.clip_grad": "apart"}, ("actor_body", "critic.head.weight")),
    "encoders": (*POLICIES["dict, shared"][:2], {**POLICIES["dict, shared"][2], **EAGER}, ("actor_body.encoder",)),
}


@pytest.mark.parametrize("case", CASES)
def test_both_learners_agree_before_while_and_after_some_are_frozen(case: str) -> None:
    obs, action, settings, names = CASES[case]
    native, readable, *learned = both(obs, action, **settings)
    for frozen in ((), names, (), names[:1]):
        weights = native.weights()  # with which both begin
        before = [(side, weights, copy.deepcopy(side.gradient.state())) for side in (native, readable)]
        for side, *_ in before:
            freeze(side, *frozen)
        assert learn_apart(native, readable, *learned, EVERY_KNOB) < TOLERANCE
        for side, weights, state in before:
            assert_kept(side, weights, state, frozen)


def assert_kept(side: Side, weights: dict[str, Tensor], state: dict[str, Any], frozen: tuple[str, ...]) -> None:
    """Frozen weights and all of their moments are the same; others are not."""
    now, later = side.weights(), side.gradient.state()
    moments = [(state["adam"].get(kind, {}), later["adam"][kind]) for kind in ("exp_avg", "exp_avg_sq")]
    for name, transform in later["transforms"].items():
        moments += [(state["transforms"][name][kind], transform[kind]) for kind in ("mean", "variance")]
    for name, _ in side.policy.named_parameters():
        is_frozen = any(name.startswith(one) for one in frozen)
        assert torch.equal(now[name], weights[name]) == is_frozen, name
        assert all(torch.equal(old[name], new[name]) for old, new in moments if name in old) or not is_frozen, name


def test_a_frozen_part_has_no_norm_and_leaves_the_clip_to_the_others() -> None:
    settings = {"ppo.epochs": 1, "ppo.batch_size": 144}
    sides = both(SEVEN, CHOICES, **settings)
    whole = [side.learn(*sides[2:], knobs_of(config_of("torch"))).metrics for side in sides[:2]]
    sides = both(SEVEN, CHOICES, **settings, **{"optimizer.frozen": ["critic"]})
    for side, before in zip(sides[:2], whole, strict=True):
        learned = side.learn(*sides[2:], knobs_of(config_of("torch")))
        assert "train/critic_grad_norm" not in learned.metrics
        assert learned.metrics["train/actor_grad_norm"] == pytest.approx(before["train/actor_grad_norm"], rel=1e-5)
        assert learned.grad_norm == pytest.approx(learned.metrics["train/actor_grad_norm"], rel=1e-5)


class FreezeAt(Hook):
    """Freezes a part at an iteration, once, or thaws it; -1 is before the first one."""

    def __init__(self, at: int, name: str = HIDDEN, learns: bool = False) -> None:
        super().__init__()
        self.at, self.name, self.learns = at, name, learns
        self.kept: list[Tensor] = []

    def begin(self) -> None:
        if self.at < 0:
            self._freeze()

    def after_iteration(self, report: Any) -> None:
        if report.progress.iteration == self.at:
            self._freeze()
        self.kept.append(self.run.policy.get_parameter(self.name).detach().clone())

    def _freeze(self) -> None:
        self.run.policy.get_parameter(self.name).requires_grad_(self.learns)


@pytest.mark.parametrize("learner", ["native", "torch"])
def test_hooks_freeze_and_thaw(learner: str) -> None:
    frozen, other = FreezeAt(-1), FreezeAt(2, "critic_body.trunk.layers.0.weight")
    agent = PPO("CartPole-v1", **SMALL, **EAGER, learner=learner)
    before = agent.policy.get_parameter(HIDDEN).detach().clone()
    agent.learn(4 * ITERATION, hooks=[frozen, other])
    assert all(torch.equal(weight, before) for weight in frozen.kept)
    assert [torch.equal(other.kept[1], weight) for weight in other.kept] == [False, True, True, True]
    agent.learn(2 * ITERATION, hooks=[FreezeAt(-1, learns=True)])
    assert not torch.equal(agent.policy.get_parameter(HIDDEN), before)


@pytest.mark.parametrize("learner", ["native", "torch"])
def test_a_resumed_run_continues_with_what_a_hook_froze(learner: str, tmp_path: Path) -> None:
    """The hook does it once, so the checkpoint must tell; then every bit is that of a run that was not interrupted."""
    settings = {**SMALL, **EAGER, **SCALED, "learner": learner, "seed": 3}

    def trained(iterations: int) -> PPO:
        return PPO("CartPole-v1", **settings).learn(
            iterations * ITERATION, hooks=[FreezeAt(2), FreezeAt(3, learns=True)]
        )

    for saved_at in (2, 4):
        whole, first = trained(6), trained(saved_at)
        first.save(tmp_path / "first.safetensors")
        resumed = PPO.load(tmp_path / "first.safetensors")
        hooks = [FreezeAt(3, learns=True)] if saved_at == 2 else []
        resumed.learn((6 - saved_at) * ITERATION, hooks=hooks)
        first.close()  # the same policy with a new trainer
        first.learn((6 - saved_at) * ITERATION, hooks=hooks)
        for other in (resumed, first):
            assert all(
                torch.equal(a, b) for a, b in zip(whole.policy.parameters(), other.policy.parameters(), strict=True)
            )


@pytest.mark.parametrize(("learner", "critic"), [("native", "scalar"), ("torch", "twin")])
def test_a_critic_that_a_hook_froze_raises_no_alert(learner: str, critic: str, tmp_path: Path) -> None:
    def freeze(run: Any, report: Any) -> None:
        for name, parameter in run.policy.named_parameters():
            parameter.requires_grad_(not name.startswith("critic"))

    agent = PPO("CartPole-v1", **SMALL, learner=learner, critic=critic)
    agent.learn(20 * ITERATION, hooks=[freeze], run_dir=tmp_path / "run")
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert len(lines) == 20
    assert not [key for line in lines for key in line if "vanishing" in key or "imbalance" in key]
    assert not [key for key in lines[-1] if key.startswith("train/critic") and "grad" in key]


def test_the_setting_of_a_resumed_run_counts_and_hooks_may_thaw_it(tmp_path: Path) -> None:
    agent = PPO("CartPole-v1", **SMALL, **{"optimizer.frozen": "actor"})
    before = agent.policy.get_parameter(HIDDEN).detach().clone()
    agent.learn(2 * ITERATION, run_dir=tmp_path / "run")
    assert torch.equal(agent.policy.get_parameter(HIDDEN), before)
    agent.save(tmp_path / "agent.safetensors")
    assert main(["resume", str(tmp_path / "run"), "--steps", str(3 * ITERATION), "--optimizer.frozen", "[]"]) == 0
    thawed = PPO.load(max((tmp_path / "run" / "checkpoints").iterdir()))
    assert not torch.equal(thawed.policy.get_parameter(HIDDEN), before)
    hooked = PPO.load(tmp_path / "agent.safetensors").learn(ITERATION, hooks=[FreezeAt(-1, learns=True)])
    assert not torch.equal(hooked.policy.get_parameter(HIDDEN), before)
    hooked.save(tmp_path / "hooked.safetensors")
    assert PPO.load(tmp_path / "hooked.safetensors").learn(ITERATION).policy.get_parameter(HIDDEN).requires_grad


class Poison(nn.Module):
    """An encoder whose features are NaN in some passes with gradients."""

    output_size, passes = 4, 0

    def forward(self, obs: Tensor) -> Tensor:
        self.passes += torch.is_grad_enabled()
        return obs + 0 / torch.tensor(float(not 4 < self.passes <= 8))


def test_a_rollback_thaws_nothing() -> None:
    """The hook freezes before the first good weights are kept or after them, and does not do it again."""
    for at in (-1, 1):
        hook = FreezeAt(at)
        agent = PPO("CartPole-v1", **SMALL, encoder=lambda spec: Poison(), max_skipped_steps=2)
        agent.learn(6 * ITERATION, hooks=[hook])
        assert agent._run is not None
        assert all(torch.equal(hook.kept[1], weight) for weight in hook.kept[2:]), at
        assert not agent.policy.get_parameter(HIDDEN).requires_grad


@pytest.mark.parametrize(
    "settings", [{}, {"critic": "quantile"}, {"critic": "twin"}], ids=["scalar", "quantile", "twin"]
)
def test_a_frozen_critic_keeps_its_values(settings: dict[str, Any]) -> None:
    """Statistics of returns rescale its last layer: neither changes."""
    given = {**SMALL, **settings, "normalize.returns": True}
    agent = PPO("CartPole-v1", **given).learn(2 * ITERATION)
    for parameter in agent.policy.critic.parameters():
        parameter.requires_grad_(False)
    before = copy.deepcopy(agent.policy.critic.state_dict())
    agent.learn(2 * ITERATION)
    assert all(torch.equal(value, before[name]) for name, value in agent.policy.critic.state_dict().items())
    moving = PPO("CartPole-v1", **given, **{"optimizer.frozen": "actor"}).learn(ITERATION)
    assert any(
        (value != 0).any() for name, value in moving.policy.critic.state_dict().items() if name.endswith("count")
    )


@pytest.mark.parametrize(
    ("entry", "frozen"),
    [
        ("critic", {"critic_body", "critic"}),
        ("actor", {"actor_body", "head"}),
        ("actor_body", {"actor_body"}),
        ("*.bias", {"actor_body", "critic_body", "head", "critic"}),
        ("head.*.bi*", {"head"}),
    ],
)
def test_entries_name_parts_modules_or_parameters(entry: str, frozen: set[str]) -> None:
    agent = PPO("CartPole-v1", **SMALL, **{"optimizer.frozen": [entry]}).learn(ITERATION)
    names = [name for name, parameter in agent.policy.named_parameters() if not parameter.requires_grad]
    assert {name.partition(".")[0] for name in names} == frozen
    assert len(names) < len(list(agent.policy.parameters()))


def test_entries_that_match_nothing_name_what_exists() -> None:
    agent = PPO("CartPole-v1", **SMALL, **{"optimizer.frozen": ["encoder", "critik"]})
    with pytest.raises(ConfigError) as caught:
        agent.learn(ITERATION)
    assert len(caught.value.problems) == 2
    assert "'encoder' matches no part and no parameter (parts: actor, critic; parameters: actor_body" in str(
        caught.value
    )
    assert "did you mean 'critic'?" in str(caught.value)


@pytest.mark.parametrize("learner", ["native", "torch"])
def test_a_policy_of_which_nothing_learns_is_refused(learner: str) -> None:
    with pytest.raises(PolicyError, match=r"every parameter of the policy is frozen \(optimizer\.frozen"):
        PPO("CartPole-v1", **SMALL, **{"optimizer.frozen": "*"}).learn(ITERATION)

    def freeze_all(run: Any, report: Any) -> None:
        run.policy.requires_grad_(False)

    agent = PPO("CartPole-v1", **SMALL, learner=learner)
    with pytest.raises(PolicyError, match="every parameter of the policy is frozen"):
        agent.learn(2 * ITERATION, hooks=[freeze_all])


@pytest.mark.parametrize("learner", ["native", "torch"])
def test_what_the_user_froze_before_training_is_saved_and_can_be_thawed(learner: str, tmp_path: Path) -> None:
    """Also by a run that continues on the loaded agent: its moments start at zero."""
    agent = PPO("CartPole-v1", **SMALL, **EAGER, learner=learner)
    agent.policy.get_parameter(HIDDEN).requires_grad_(False)
    before = agent.policy.get_parameter(HIDDEN).detach().clone()
    agent.learn(2 * ITERATION).save(tmp_path / "agent.safetensors")
    loaded = PPO.load(tmp_path / "agent.safetensors")
    thawed = PPO.load(tmp_path / "agent.safetensors")
    thawed.policy.get_parameter(HIDDEN).requires_grad_(True)
    assert not torch.equal(thawed.learn(ITERATION).policy.get_parameter(HIDDEN), before)
    for one in (agent, loaded):
        assert not one.policy.get_parameter(HIDDEN).requires_grad
        one.learn(ITERATION)
        assert torch.equal(one.policy.get_parameter(HIDDEN), before)
        one.policy.get_parameter(HIDDEN).requires_grad_(True)
        one.learn(ITERATION)
        assert not torch.equal(one.policy.get_parameter(HIDDEN), before)
    assert all(torch.equal(a, b) for a, b in zip(agent.policy.parameters(), loaded.policy.parameters(), strict=True))


@pytest.mark.parametrize("learner", ["native", "torch"])
def test_a_run_of_which_everything_is_frozen_is_saved(learner: str, tmp_path: Path) -> None:
    def freeze_all(run: Any, report: Any) -> None:
        run.policy.requires_grad_(report.progress.iteration < 2)

    agent = PPO("CartPole-v1", **SMALL, learner=learner)
    with pytest.raises(PolicyError, match=rf"is frozen .*saved at step {2 * ITERATION}; 'surefoot resume"):
        agent.learn(4 * ITERATION, run_dir=tmp_path / "run", hooks=[freeze_all])
    saved = PPO.load(max((tmp_path / "run" / "checkpoints").iterdir()))
    saved.policy.requires_grad_(True)
    saved.learn(ITERATION)


def test_what_was_built_frozen_is_not_thawed_in_silence() -> None:
    module = network()
    module[0].requires_grad_(False)
    gradient = GradientStep(module, OptimizerConfig(), None)
    module[0].requires_grad_(True)
    with pytest.raises(PolicyError, match=r"cannot learn later; build it with requires_grad and freeze it with"):
        gradient.add(module(torch.ones(1, 3)).sum())


@pytest.mark.parametrize(
    "state", [{"frozen": ["1.weight"], "thawed": []}, {"frozen": [], "thawed": [3]}, {"frozen": {}, "thawed": []}, {}]
)
def test_odd_states_are_refused(state: dict[str, Any]) -> None:
    with pytest.raises(CheckpointError):
        Frozen(network()).check_state(Saved(state, "frozen"))


@pytest.mark.parametrize("missed", [{"0.weight": 9}, {"0.weight": -1}, {"9.weight": 1}, {"0.weight": None}, 3])
def test_odd_numbers_of_missed_steps_are_refused(missed: Any) -> None:
    module = network()
    gradient = GradientStep(module, OptimizerConfig(), None)
    gradient.add(module(torch.ones(1, 3)).sum())
    gradient.step(KNOBS)
    state = gradient.state()
    gradient.check_state(Saved(state))
    state["adam"]["missed"] = missed
    with pytest.raises(CheckpointError, match="missed"):
        gradient.check_state(Saved(state))


def test_clips_apart_are_those_of_torch_for_each_side() -> None:
    for side in (sides := both(SEVEN, CHOICES, **{"optimizer.clip_grad": "apart", "ppo.epochs": 1}))[:2]:
        assert side.gradient._clip.groups
    assert learn_apart(*sides, knobs_of(config_of("torch"))) < TOLERANCE
    policy = sides[1].policy
    for parameter in policy.parameters():
        parameter.data.zero_()
    gradient = GradientStep(policy, OptimizerConfig(clip_grad="apart"), 0.5)
    named = dict(policy.named_parameters())
    gradient.add(sum((3 if "critic" in name else 0.01) * one.sum() for name, one in named.items()))  # type: ignore[arg-type]
    gradient.step(KNOBS)
    sides_of = {is_critic: [n for n in named if n.startswith("critic") == is_critic] for is_critic in (False, True)}
    for is_critic, names in sides_of.items():
        size = sum(named[name].numel() for name in names)
        value = (3 if is_critic else 0.01) * min(1.0, 0.5 / ((3 if is_critic else 0.01) * size**0.5))
        assert gradient._gradient[gradient.learning[names[0]]][0].item() == pytest.approx(value, rel=1e-4)


@pytest.mark.parametrize("settings", [{"share_trunk": True}, {"share_memory": True, "memory": "gru"}])
def test_clips_apart_need_parameters_apart(settings: dict[str, Any]) -> None:
    agent = PPO("CartPole-v1", **SMALL, **settings, **{"optimizer.clip_grad": "apart"})
    with pytest.raises(ConfigError, match=r"optimizer\.clip_grad: apart needs an actor and a critic that share no"):
        agent.learn(ITERATION)
