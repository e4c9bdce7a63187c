"""Every native task and every kind of policy that the core knows: both paths are the same."""

from typing import Any

import pytest

from surefoot.envs.native import native_ids
from surefoot.presets import load_preset, preset_names
from surefoot.settings.layers import build_config
from surefoot.verification import Report, verify
from tests.verification.sizes import less

PROBE = "Probe-v0"
COMPONENTS = {
    *("policy outputs", "noise", "actions", "log-probs", "values", "env dynamics", "rewards", "flags"),
    *("episode starts", "final observations", "bootstraps", "GAE", "losses", "gradients", "normalizer statistics"),
    *("learner", "optimizer", "weights"),
    *("episode statistics", "thread independence", "row independence", "ratio one", "resume", "engine contract"),
}
POLICIES: dict[str, dict[str, Any]] = {
    "discrete": {"env.kwargs": {"action": "discrete"}},
    "multi_discrete": {"env.kwargs": {"action": "multi_discrete"}, "policy.activation": "relu"},
    "multi_binary": {"env.kwargs": {"action": "multi_binary"}, "policy.share_trunk": True, "policy.activation": "elu"},
    "gaussian": {"env.kwargs": {"action": "box"}, "policy.std": "state", "policy.activation": "silu"},
    "rescaled": {"env.kwargs": {"action": "box"}, "policy.action_bounds": "rescale", "policy.activation": "gelu"},
    "tanh": {"env.kwargs": {"action": "box"}, "policy.distribution": "tanh_gaussian", "policy.std": "fixed"},
    "beta": {"env.kwargs": {"action": "box"}, "policy.distribution": "beta", "policy.activation": "leaky_relu"},
    "encoders": {
        "policy.encoders": {"cues": {"kind": "mlp", "layers": [16, 8]}, "wheel": "identity"},
        "policy.critic_obs": ["fuel"],
        "normalize.returns": True,
        "normalize.reward": True,
    },
    "unread key": {"policy.encoders": {"fuel": "none"}, "normalize.obs": True},
    "truncation as termination": {"env.truncation_as_termination": True},
    "gru": {"policy.memory": {"kind": "gru", "layers": 2, "hidden_size": 12}, "rollout.sequence_length": 7},
    "lstm, shared": {"policy.memory": {"kind": "lstm", "shared": True}, "policy.critic_obs": ["fuel"]},
    "gru, recomputed": {"policy.memory": "gru", "ppo.sequence_state": "recomputed", "rollout.sequence_length": 7},
    "lstm, burn-in": {"policy.memory": "lstm", "ppo.burn_in": 3, "rollout.sequence_length": 7, "normalize.obs": True},
}

QUANTILES = {"kind": "quantile", "num_quantiles": 7}
TWIN, TWIN_QUANTILES = {"kind": "twin"}, {"kind": "twin", "of": QUANTILES}
MASKED, FREE = {"env.kwargs": {"action": "multi_discrete"}}, {"env.kwargs": {"action": "box"}}
GRU, LSTM = ({"policy.memory": {"kind": kind, "hidden_size": 6}} for kind in ("gru", "lstm"))
SCALED = {"optimizer.transforms": {"variance": {"kind": "variance_scaling", "warmup": 3}}}
PIECES = {"ppo.micro_batch_size": 25}
NORMALIZED = {"normalize.returns": True, "ppo.clip_value": 0.2}
LATE = {"normalize.returns": True, "normalize.return_stats": "previous"}
GRID: dict[str, dict[str, Any]] = {
    # Every pair of critic, memory, mask, scaled gradients, micro-batches and normalized returns is in some entry.
    "quantiles, masked, scaled": {"policy.critic": QUANTILES, **MASKED, **SCALED},
    "quantiles, gru, pieces, normalized": {"policy.critic": QUANTILES, **FREE, **GRU, **PIECES, **NORMALIZED},
    "quantiles, lstm, masked, late": {"policy.critic": QUANTILES | {"clip": "mean"}, **MASKED, **LSTM, **LATE},
    "twin, pieces, normalized": {"policy.critic": TWIN, **MASKED, **PIECES, **NORMALIZED},
    "twin, gru, masked, scaled": {"policy.critic": TWIN, **MASKED, **GRU, **SCALED, "policy.share_memory": True},
    "twin, lstm, scaled, late": {"policy.critic": TWIN, **FREE, **LSTM, **SCALED, **LATE},
    "twin quantiles, scaled, normalized": {"policy.critic": TWIN_QUANTILES, **FREE, **SCALED, **NORMALIZED},
    "twin quantiles, gru, masked, late": {"policy.critic": TWIN_QUANTILES, **MASKED, **GRU, **LATE},
    "twin quantiles, lstm, all": {
        "policy.critic": TWIN_QUANTILES,
        **{**MASKED, **LSTM, **SCALED, **PIECES, **NORMALIZED},
    },
    "twin quantiles, shared, pieces": {"policy.critic": TWIN_QUANTILES, **FREE, **PIECES, "policy.share_trunk": True},
}


@pytest.fixture(autouse=True)
def _less(monkeypatch: pytest.MonkeyPatch) -> None:
    less(monkeypatch)


def assert_equal(report: Report) -> None:
    assert report.path == "native", report.reason
    assert report.ok, [part for part in report.components if part.verdict == "DIFFERS"]
    assert {part.name for part in report.components} >= COMPONENTS


def endings(report: Report) -> tuple[int, int]:
    """Terminations and truncations that were compared."""
    met = [part.note.split(", ") for part in report.components if part.compared.startswith("endings")]
    terminations, truncations = (sum(int(part.split()[0]) for part in kind) for kind in zip(*met, strict=True))
    return terminations, truncations


@pytest.mark.parametrize("env_id", [name for name in native_ids() if name != PROBE])
def test_native_task_equals_the_reference(env_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    less(monkeypatch, limits=(23, 7))  # some fall after 20 steps
    preset = load_preset(env_id) if env_id in preset_names() else {"env": {"id": env_id}}
    report = verify(build_config(preset, {"env.truncation_as_termination": False}))
    assert_equal(report)
    assert endings(report)[1] > 0


@pytest.mark.parametrize("kind", POLICIES | GRID)
def test_native_policy_equals_the_reference(kind: str) -> None:
    report = verify(build_config({"env.id": PROBE, "normalize.obs": True}, (POLICIES | GRID)[kind]))
    assert_equal(report)
    terminations, truncations = endings(report)
    assert terminations > 0
    assert (truncations > 0) == (kind != "truncation as termination")


def test_a_user_s_settings_survive_the_smaller_size() -> None:
    config = build_config({"ppo.micro_batch_size": 300, "ppo.batch_size": 512, "ppo.advantage_norm": "minibatch"})
    assert_equal(verify(config))
