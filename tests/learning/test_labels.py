"""Labels that hooks add to rollouts, terms that learn from all rows, and the weight of the surrogate."""

import runpy
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch

from surefoot import PPO, ArraySpec, Hook, Knobs, Minibatch, Rollout, Targets, Term, TermLoss
from surefoot.errors import HookError, PartError
from surefoot.learning.native_learner import NativeLearner, native_samples
from surefoot.native.kernels import set_kernel_threads
from surefoot.policies.actor_critic import ActorCritic
from surefoot.rollout.samples import acted, samples_of
from surefoot.verification import check, verify
from tests.learning.both_learners import Case, assert_alike
from tests.verification.forked import forked
from tests.verification.sizes import less

EXAMPLES = Path(__file__).parents[2] / "docs/extend/examples"
VECTOR = ArraySpec("box", (5,), "float32")
KNOBS = {"lr": 3e-3, "clip": 0.2, "entropy_coef": 0.01, "value_coef": 0.5}
TINY: dict[str, Any] = {"num_envs": 4, "num_steps": 8, "batch_size": 16, "epochs": 2, "hidden": [8]}


@dataclass
class Labeled(Case):
    """A rollout with labels; `others` rows belong to another policy."""

    others: int = 2
    weight: float = 0.7
    surrogate: float = 1.0

    def rollout(self, policy: ActorCritic) -> tuple[Rollout, Targets]:
        rollout, targets = super().rollout(policy)
        label = torch.randint(0, 3, rollout.action.shape, generator=torch.Generator().manual_seed(5))
        others = torch.zeros_like(rollout.valid)
        others[:, : self.others] = True
        rollout = replace(
            rollout,
            valid=rollout.valid & ~others,
            others=others if self.others else None,
            extras={"label": label},
            learned_extras=("label",),
        )
        return rollout, targets

    def learned(self, learner: str, updates: int = 2) -> tuple[dict[str, torch.Tensor], list[Any]]:
        """The policy after some updates, and their metrics."""
        built = self.build(learner)
        assert isinstance(built, NativeLearner) == (learner == "native")
        assert isinstance(built.policy, ActorCritic)
        data = self.rollout(built.policy)
        knobs = Knobs(KNOBS, **{"clone.weight": self.weight, "surrogate_coef": self.surrogate})
        found = [built.learn(*data, knobs) for _ in range(updates)]
        return built.policy.state_dict(), found


def labeled(ppo: dict[str, Any] | None = None, policy: dict[str, Any] | None = None, **given: Any) -> Labeled:
    return Labeled(VECTOR, policy or {}, {"terms": {"clone": {}}} | (ppo or {}), {"obs": True}, **given)


CASES = {
    "own rows": labeled(others=0),
    "other rows": labeled(),
    "pieces": labeled({"micro_batch_size": 7, "advantage_norm": "minibatch"}),
    "labels alone": labeled(surrogate=0.0),
    "only measured": labeled(weight=0.0),
    "gru": labeled(policy={"memory": "gru"}),
    "lstm, shared, clipped": labeled({"clip_value": 0.2}, {"memory": "lstm", "share_memory": True}),
    "shared trunk": labeled(policy={"share_trunk": True, "activation": "relu"}),
}


@pytest.mark.parametrize("name", CASES)
def test_both_learners_learn_the_same(name: str) -> None:
    (weights, ours), (expected, reference) = (CASES[name].learned(learner) for learner in ("native", "torch"))
    assert_alike(weights, expected, 2e-5)
    for one, other in zip(ours, reference, strict=True):
        for metric in ("policy_loss", "value_loss", "entropy", "approx_kl", "clip_fraction", "grad_norm"):
            assert getattr(one, metric) == pytest.approx(getattr(other, metric), abs=1e-4), metric
        assert one.metrics["clone/loss"] == pytest.approx(other.metrics["clone/loss"], abs=1e-4)


def test_the_number_of_threads_changes_no_bit() -> None:
    found = []
    for number in (1, 2, 3):
        set_kernel_threads(number)
        found.append(CASES["other rows"].learned("native")[0])
    set_kernel_threads(1)
    assert all(torch.equal(found[0][name], one[name]) for one in found[1:] for name in one)


@pytest.mark.parametrize("learner", ["native", "torch"])
def test_other_rows_weigh_nothing_but_in_the_term_that_takes_them(learner: str) -> None:
    whole = {"batch_size": 64, "epochs": 1}
    case = labeled(whole, weight=0.0)
    weights, found = case.learned(learner, 1)
    alone, expected = replace(case, ppo={"batch_size": 64, "epochs": 1}).learned(learner, 1)
    assert_alike(weights, alone, 1e-6)
    assert found[0].policy_loss == pytest.approx(expected[0].policy_loss, abs=1e-6)
    assert found[0].value_loss == pytest.approx(expected[0].value_loss, rel=1e-5)
    weights, _ = labeled(whole, weight=0.7).learned(learner, 1)
    others = labeled(whole, weight=0.7)
    others.others = 0
    assert any(not torch.equal(weights[name], other) for name, other in others.learned(learner, 1)[0].items())


def test_the_gradient_of_the_native_term_is_that_of_pytorch() -> None:
    case = labeled({"epochs": 1, "batch_size": 64}, surrogate=0.0)
    knobs = Knobs(KNOBS, **{"clone.weight": 0.7, "surrogate_coef": 0.0, "entropy_coef": 0.0, "value_coef": 0.0})
    native, reference = case.build("native"), case.build("torch")
    assert isinstance(reference.policy, ActorCritic)
    data = case.rollout(reference.policy)
    native.learn(*data, knobs)
    (batch,) = samples_of(*data, reference._ppo, with_others=True).minibatches(64)
    loss = -0.7 * reference.policy(*batch.inputs).distribution.log_prob(batch.extras["label"]).mean()
    names = [name for name, weight in reference.policy.named_parameters() if "critic" not in name]
    slopes = torch.autograd.grad(loss, [reference.policy.get_parameter(name) for name in names])
    places = native.gradient.native_memory()
    for name, slope in zip(names, slopes, strict=True):
        first = places["offsets"][name]
        ours = torch.from_numpy(places["gradient"][first : first + slope.numel()]).view_as(slope)
        torch.testing.assert_close(ours, slope, atol=1e-6, rtol=1e-4)


def test_weights_of_samples() -> None:
    case = labeled(others=1)
    rollout, targets = case.rollout(case.build("torch").policy)  # type: ignore[arg-type]
    batch = samples_of(rollout, targets, case.config("torch").ppo, with_others=True).batch
    assert batch.weight is not None
    assert (len(batch), len(acted(batch))) == (64, 48)
    assert batch.weight.mean() == pytest.approx(1)
    assert samples_of(rollout, targets, case.config("torch").ppo).batch.weight is None


class Label(Hook):
    """Writes what it was made with."""

    def __init__(self, written: Any = 1, name: str = "label", dtype: str = "int64") -> None:
        super().__init__()
        self.written, self.name, self.dtype = written, name, dtype

    def extras(self) -> dict[str, ArraySpec]:
        return {self.name: ArraySpec("box", (), self.dtype)}

    def after_rollout(self, rollout: Rollout) -> None:
        if isinstance(self.written, torch.Tensor):
            rollout.extras[self.name] = self.written
        else:
            rollout.extras[self.name].fill_(self.written)


@pytest.mark.parametrize("learner", ["native", "torch"])
def test_a_policy_learns_its_labels(learner: str) -> None:
    settings = {"ppo.terms": {"clone": {}}, "ppo.surrogate_coef": 0.0, "lr": 0.03, "train.learner": learner}
    agent = PPO("CartPole-v1", **TINY, **settings).learn(320, hooks=[Label(1)])
    obs = torch.randn(16, 4)
    distribution = agent.policy(obs, (), torch.ones(16, dtype=torch.bool)).distribution
    assert distribution.log_prob(torch.ones(16, dtype=torch.int64)).exp().mean() > 0.8


@pytest.mark.parametrize(
    ("hooks", "error"),
    [
        ([], "term 'clone' reads the extra 'label', int64 of shape \\[\\] per row"),
        ([Label(dtype="float32")], "term 'clone' reads the extra 'label', int64"),
        ([Label(torch.zeros(2, 2))], "hook 'Label' must write a tensor of torch.int64 and shape \\[8, 4\\]"),
        ([Label(torch.nan, "other", "float32")], "wrote numbers that are not finite to the extra 'other'"),
        ([Label(name="reward")], "declares the extra 'reward', which rollouts already have"),
        ([Label(), Label()], "hook 'Label-2' declares the extra 'label', which rollouts already have"),
    ],
)
def test_what_does_not_fit_is_refused(hooks: list[Hook], error: str) -> None:
    with pytest.raises((HookError, PartError), match=error):
        PPO("CartPole-v1", **TINY, **{"ppo.terms": {"clone": {}}}).learn(32, hooks=hooks)


class Counts(Term):
    """Counts samples and sums an extra; a user's term in Python."""

    def loss(self, minibatch: Minibatch) -> TermLoss:
        label = minibatch.batch.extras["label"].float()
        return TermLoss(0 * minibatch.log_ratio.sum(), {"label": label.mean()})


def test_terms_in_python_read_labels() -> None:
    metrics: list[float] = []
    agent = PPO("CartPole-v1", **TINY, **{"ppo.terms": {"counts": f"{__name__}:Counts"}})
    agent.learn(32, hooks=[Label(3), lambda report: metrics.append(report.learned.metrics["counts/label"])])
    assert metrics == [3]


class Joins(Hook):
    """A copy of the policy acts in the first row; after a rollout, weights may turn into NaN."""

    def __init__(self, poisoned_at: int = -1) -> None:
        super().__init__()
        self._poisoned_at = poisoned_at

    def begin(self) -> None:
        self.run.actors.add("copy", deepcopy(self.run.policy), is_followed=True)
        self.run.actors.assign([0], "copy")

    def after_rollout(self, rollout: Rollout) -> None:
        if self.run.progress.iteration == self._poisoned_at:
            with torch.no_grad():
                next(self.run.policy.parameters()).fill_(float("nan"))


class Acted(Counts):
    """Reads who acted in all rows."""

    learns_from_all_rows = True

    def loss(self, minibatch: Minibatch) -> TermLoss:
        actor = minibatch.batch.extras["actor"].float()
        return TermLoss(0 * minibatch.log_ratio.sum(), {"share": actor.mean()})


@pytest.mark.parametrize("engine", ["native", "local", "processes"])
def test_terms_read_who_acted(engine: str) -> None:
    metrics: list[float] = []
    agent = PPO("CartPole-v1", **TINY, engine=engine, **{"ppo.terms": {"acted": f"{__name__}:Acted"}})
    agent.learn(32, hooks=[Joins(), lambda report: metrics.append(report.learned.metrics["acted/share"])])
    assert metrics[0] == 0.25


def test_native_terms_read_who_acted() -> None:
    """The number of who acted is also that of an action, so the term that learns labels can read it."""
    found = []
    for learner in ("native", "torch"):
        settings = {"ppo.terms": {"clone": {"label": "actor"}}, "train.learner": learner}
        agent = PPO("CartPole-v1", **TINY, **settings).learn(32, hooks=[Joins()])
        found.append(agent.policy.state_dict())
    assert_alike(*found, 2e-5)


def test_extras_of_any_type_reach_native_terms() -> None:
    kinds = {"int32": "int64", "uint8": "int64", "float64": "float32", "float16": "float32", "bool": "bool"}
    case = labeled(others=0)
    policy: Any = case.build("torch").policy
    rollout, targets = case.rollout(policy)
    extras = {name: rollout.extras["label"].to(getattr(torch, name)) for name in kinds}
    rollout = replace(rollout, extras=extras, learned_extras=tuple(extras))
    given = native_samples(samples_of(rollout, targets, case.config("torch").ppo), policy.preprocess)["extras"]
    assert {name: str(array.dtype) for name, array in given.items()} == kinds


@pytest.mark.parametrize("poisoned_at", [-1, 3])
def test_labels_and_other_policies_with_any_number_of_threads(poisoned_at: int) -> None:
    """Also if the run rolls back in between."""
    found = []
    for workers in (1, 2, 3):
        settings = {"rollout.workers": workers, "ppo.terms": {"clone": {}}, "ppo.surrogate_coef": 0.5, "memory": "gru"}
        agent = PPO("CartPoleNoVel-v1", **TINY, **settings).learn(24 * 6, hooks=[Label(1), Joins(poisoned_at)])
        found.append(agent.policy.state_dict())
    assert all(weight.isfinite().all() for weight in found[0].values())
    assert all(torch.equal(found[0][name], one[name]) for one in found[1:] for name in one)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_labels_of_a_teacher_are_allowed_by_the_mask(tmp_path: Path) -> None:
    team, settings = "pettingzoo:tests.training.rank_cases", TINY | {"eval_episodes": 0}
    PPO(team, **settings, seed=3).learn(64).save(tmp_path / "teacher.safetensors")
    teacher = runpy.run_path(str(EXAMPLES / "teacher.py"))["Teacher"]
    checked: list[bool] = []

    class Looks(Hook):
        def after_rollout(self, rollout: Rollout) -> None:
            assert rollout.action_mask is not None
            allowed = rollout.action_mask.gather(2, rollout.extras["label"].unsqueeze(2)).squeeze(2)
            checked.append(bool(allowed[rollout.valid].all()))

    hook = teacher(teacher.Settings(checkpoint=str(tmp_path / "teacher.safetensors"), num_rows=0))
    PPO(team, **settings, **{"ppo.terms": {"clone": {}}}).learn(128, hooks=[hook, Looks()])
    assert checked
    assert all(checked)


def test_verify_makes_up_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    less(monkeypatch)
    monkeypatch.setattr(check, "new_process", forked)
    settings = {"ppo.terms": {"clone": {"weight": 0.3}}, "ppo.surrogate_coef": 0.5}
    report = verify(PPO("CartPole-v1", **TINY, **settings).config)
    assert report.ok, report.differing


@pytest.fixture(autouse=True)
def _one_seed() -> Iterator[None]:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield
