"""Actions of several parts: what envs get, what is learned from, and that everything else works with them."""

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from gymnasium.vector import SyncVectorEnv

from surefoot import PPO
from surefoot.data.specs import HybridSpec, dead_rows, mask_pieces, spec_from_json, spec_to_json
from surefoot.envs.make import make_vec_env
from surefoot.envs.protocol.spaces import action_spec
from surefoot.errors import CheckpointError, ConfigError, EnvError, PolicyError
from surefoot.policies.actor_critic import ActorCritic
from surefoot.policies.hybrid_head import Hybrid, HybridHead
from surefoot.settings.config import EnvConfig, NormalizeConfig, PolicyConfig, RolloutConfig
from surefoot.training.checkpoint import read_checkpoint, write_checkpoint
from surefoot.verification import verify
from tests.envs.machine import SPACES, Machine
from tests.rollout.test_first_ratio import assert_ratio_is_one
from tests.training.states import assert_same
from tests.verification.sizes import less

TINY = {"num_envs": 2, "num_steps": 16, "batch_size": 16, "epochs": 2, "hidden": 8, "eval_episodes": 0}


def vec_env(form: str, has_masks: bool, engine: str = "local") -> Any:
    return make_vec_env(partial(Machine, form, has_masks), EnvConfig(), 3, 1, RolloutConfig(engine=engine))


@pytest.mark.parametrize("has_masks", [False, True], ids=["free", "masked"])
@pytest.mark.parametrize("form", SPACES)
@pytest.mark.parametrize("settings", [{}, {"distribution": "beta", "share_trunk": True}], ids=str)
def test_the_first_ratio_is_one(form: str, has_masks: bool, settings: dict[str, Any]) -> None:
    env = vec_env(form, has_masks)
    torch.manual_seed(1)
    policy = ActorCritic(env.obs_spec, env.action_spec, PolicyConfig(**settings), NormalizeConfig())
    with torch.no_grad():
        for name, parameter in policy.head.named_parameters():
            if name.endswith("weight"):
                parameter.mul_(30)
    assert_ratio_is_one(env, policy)


def test_log_probs_entropies_and_divergences_are_sums_over_the_components() -> None:
    spec, config = action_spec(SPACES["dict"]), PolicyConfig(distribution={"kind": "tanh_gaussian", "std": "state"})
    torch.manual_seed(2)
    assert isinstance(spec, HybridSpec)
    head = HybridHead(5, spec, config)
    assert [type(one).__name__ for one in head.heads] == [
        *("TanhGaussianHead", "BernoulliHead", "CategoricalHead", "MultiDiscreteHead")
    ]
    one, other = (head(torch.randn(6, 5)) for _ in range(2))
    raw = one.sample(head.noise(torch.rand(6, head.noise_size)))
    pieces = raw[:, :2], raw[:, 2:4].long(), raw[:, 4].long(), raw[:, 5:].long()
    expected = sum(part.log_prob(piece) for part, piece in zip(one.components, pieces, strict=True))
    torch.testing.assert_close(one.log_prob(raw), expected)
    torch.testing.assert_close(one.entropy(), sum(part.entropy() for part in one.components))
    divergences = (ours.kl_divergence(theirs) for ours, theirs in zip(one.components, other.components, strict=True))
    torch.testing.assert_close(one.kl_divergence(other), sum(divergences))
    torch.testing.assert_close(head.mean_std(lambda: one), one.components[0].mean_std())


def test_every_engine_and_vector_env_gives_the_env_what_its_space_has() -> None:
    make = partial(Machine, "dict", True)
    local, processes = (
        PPO(make, seed=3, engine=engine, workers=1, **TINY).learn(64) for engine in ("local", "processes")
    )
    assert_same(local.policy.state_dict(), processes.policy.state_dict())
    for form in SPACES:
        envs = SyncVectorEnv([partial(Machine, form, True)] * 2)
        PPO(envs, **{key: value for key, value in TINY.items() if key != "num_envs"}).learn(64)


def test_a_saved_agent_continues_bit_for_bit_and_acts_in_its_env(tmp_path: Any) -> None:
    make = partial(Machine, "tuple", False)
    agent = PPO(make, seed=3, memory="gru", **TINY).learn(64)
    agent.save(tmp_path / "a.safetensors")
    again = PPO.load(tmp_path / "a.safetensors", make)
    assert again.specs == agent.specs
    assert_same(again.learn(64).policy.state_dict(), agent.learn(64).policy.state_dict())
    action, _ = again.predict(np.zeros(4))
    assert SPACES["tuple"].contains((action[0].astype(np.float64), *action[1:]))
    batch, _ = again.predict(np.zeros((5, 4)), deterministic=False)
    assert [part.shape for part in batch] == [(5, 1, 2), (5, 2), (5,), (5, 2)]
    with pytest.raises(EnvError, match="differs from those the agent was trained with"):
        PPO.load(tmp_path / "a.safetensors", partial(Machine, "dict", False)).learn(32)


def test_a_damaged_spec_of_a_saved_action_is_typed(tmp_path: Any) -> None:
    PPO(Machine, **TINY).save(tmp_path / "a.safetensors")
    state = read_checkpoint(tmp_path / "a.safetensors")
    for wrong in ({"kind": "box"}, {"kind": ["dict"]}, {"keys": {}}, {"keys": 3}):
        write_checkpoint(tmp_path / "b.safetensors", state | {"action_spec": state["action_spec"] | wrong})
        with pytest.raises(CheckpointError):
            PPO.load(tmp_path / "b.safetensors")
    write_checkpoint(tmp_path / "b.safetensors", state | {"obs_spec": state["action_spec"]})
    with pytest.raises(CheckpointError, match="obs_spec must be one array or a dict"):
        PPO.load(tmp_path / "b.safetensors")


def test_the_core_says_in_one_line_why_it_does_not_learn_them() -> None:
    with pytest.raises(ConfigError, match="cannot be native: hybrid actions have no native implementation; set it to"):
        PPO(Machine, learner="native", **TINY).learn(32)


def test_verify_and_export(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    less(monkeypatch)
    report = verify(env=partial(Machine, "dict", True))
    assert report.ok, report.differing
    pytest.importorskip("onnxruntime")
    exported = PPO(partial(Machine, "dict", True), **TINY).export_onnx(tmp_path / "machine.onnx")
    assert exported.parity.largest_difference < 1e-5
    compile(exported.script.read_text(), "script", "exec")
    assert '"gear": action[0, 4:5].reshape(()).astype("int64")' in exported.script.read_text()


def test_masks_are_flat_or_of_the_form_of_the_action() -> None:
    spec = action_spec(SPACES["dict"])
    flat = [True, False, True, True, False, *[True] * 6]
    gear, buttons = np.array([1, 1, 0]), np.array([1, 0])
    for mask in (flat, {"gear": gear, "buttons": buttons}, (None, buttons, gear, None)):
        pieces = mask_pieces(mask, spec) if not isinstance(mask, list) else [mask]
        assert np.concatenate([np.ravel(piece) for piece in pieces]).astype(bool).tolist() == flat
    masks = np.array([flat, [False, False, *flat[2:]], [*flat[:2], *[False] * 3, *flat[5:]]])
    assert dead_rows(masks, spec).tolist() == [False, False, True], "buttons may all be forbidden, gears not"
    agent = PPO(partial(Machine, "dict", True), **TINY)
    for mask in (flat, {"gear": gear, "buttons": buttons}, np.array([flat])):
        chosen, _ = agent.predict(np.zeros(4), action_mask=mask, deterministic=False)
        assert chosen["gear"] != 1
    with pytest.raises(PolicyError, match="action_mask must have 11 flags per row for 1 rows"):
        agent.predict(np.zeros(4), action_mask=flat[1:])
    with pytest.raises(PolicyError, match="forbids every action of a row"):
        agent.predict(np.zeros(4), action_mask={"gear": np.zeros(3)})


@pytest.mark.parametrize(
    ("space", "message"),
    [
        (spaces.Tuple((spaces.Tuple((spaces.Discrete(2),)), spaces.Discrete(2))), "must not be empty or nested"),
        (spaces.Tuple(()), "must not be empty or nested"),
        (spaces.Tuple((spaces.Text(3),)), "use Box, Discrete, MultiDiscrete or MultiBinary, or a Tuple or Dict"),
        (
            spaces.Dict({"a": spaces.Discrete(2**25)}),
            "the component 'a' of action space .* has choices beyond 16,777,216",
        ),
        (
            spaces.Tuple((spaces.Discrete(3, start=10**8), spaces.Box(-1, 1, (2,)))),
            "the component '0' of action space .* has choices beyond 16,777,216; .*: count from a smaller start",
        ),
    ],
)
def test_other_spaces_are_refused(space: Any, message: str) -> None:
    with pytest.raises(EnvError, match=message):
        action_spec(space)


def test_a_distribution_that_does_not_fit_its_parts_is_refused() -> None:
    spec = action_spec(SPACES["dict"])
    with pytest.raises(PolicyError, match="categorical requires a Discrete action space, but this one is Box"):
        ActorCritic(spec_of_obs(), spec, PolicyConfig(distribution="categorical"), NormalizeConfig())
    assert spec_from_json(spec_to_json(spec)) == spec
    choices = action_spec(spaces.Tuple((spaces.Discrete(2), spaces.Discrete(3))))
    policy = ActorCritic(spec_of_obs(), choices, PolicyConfig(distribution="categorical"), NormalizeConfig())
    output = policy(torch.zeros(2, 4), (), torch.ones(2, dtype=torch.bool))
    assert isinstance(output.distribution, Hybrid)
    assert policy.head.to_env(output.distribution.mode()).shape == (2, 2)


def spec_of_obs() -> Any:
    return action_spec(spaces.Box(-1, 1, (4,)))
