"""Checkpoints with a right checksum and wrong contents: typed errors that name file and entry, and change nothing."""

import json
import shutil
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch

from surefoot import PPO, Hook
from surefoot.cli.resume import go_on
from surefoot.envs.adapters.snapshot import load_env, save_env
from surefoot.errors import CheckpointError, CheckpointMismatchError, EnvError, SurefootError
from surefoot.storage.state import copied
from surefoot.training.checkpoint import check_savable, read_checkpoint, write_checkpoint
from surefoot.training.run_directory import RunDirectory
from tests.cli.processes import Process, with_little_memory
from tests.faults.test_checkpoint_faults import forge, metadata
from tests.training.states import assert_same

pytestmark = pytest.mark.xdist_group("checkpoint contents")

TINY: dict[str, Any] = {"num_envs": 2, "num_steps": 8, "batch_size": 8, "epochs": 1, "hidden": 4, "eval_episodes": 0}
QUIET: dict[str, Any] = {"log": {"console": "off", "tensorboard": False}}


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory) -> Path:
    run = tmp_path_factory.mktemp("checkpoint_contents") / "run"
    settings = {"normalize": {"obs": True, "reward": True}, "schedules": {"lr": "kl_adaptive"}}
    PPO("CartPole-v1", **TINY, **QUIET, **settings).learn(32, run_dir=run).close()
    return run


@pytest.fixture
def run(finished_run, tmp_path) -> Path:
    return Path(shutil.copytree(finished_run, tmp_path / "run"))


@pytest.fixture
def model(run) -> Path:
    return RunDirectory(run).saved()[0]


def change(path: Path, entry: str, value: Any) -> Path:
    """Write another value into a checkpoint, with a right checksum; the entry is a path such as a/b/0."""
    state = read_checkpoint(path)
    *outer, last = entry.split("/")
    holder: Any = state
    for name in outer:
        holder = holder[int(name) if isinstance(holder, list) else name]
    if value is KeyError:
        del holder[last]
    else:
        holder[last] = value
    write_checkpoint(path, state)
    return path


# Any damage at all.


# Each entry by name.

WRONG = {
    "progress/step": [KeyError, "x", -1, 2**60, True],
    "progress/update": [KeyError, 0.5],
    "policy": [[], 5],
    "gradient/adam/step": [KeyError, 3, torch.tensor(-1.0), torch.tensor(np.nan)],
    "gradient/adam/exp_avg": [KeyError, {}, None],
    "gradient/transforms": [KeyError, [1]],
    "objective": [[1]],
    "scorer/reward_scaler": [KeyError, {}, 5],
    "scorer/reward_scaler/var": [KeyError, torch.tensor(-1.0, dtype=torch.float64), torch.zeros(2), "x"],
    "scorer/estimator": [KeyError],
    "schedules/lr": [5, {}],
    "schedules/lr/state/value": [KeyError, "x", np.nan, -1.0],
    "collector/step": [KeyError, "x", -1],
    "collector/opening": [None, {}],
    "collector/opening/obs": [KeyError, torch.zeros(2, 5), torch.full((2, 4), np.nan)],
    "collector/opening/episode_start": [5, torch.zeros(())],
    "collector/memory": [KeyError, [torch.zeros(2)], "x"],
    "collector/episodes/recent": [KeyError, [[1.0]], [["x", 1, {}]], [[1.0, -1, {}]], [[1.0, 1, {"m": "x"}]]],
    "collector/episodes/length": [KeyError, np.zeros(2), np.array([-1, 0])],
    "collector/envs": [KeyError, 5],
    "collector/envs/rows": [5, np.zeros((2, 1), np.int64)],
    "collector/actors": [{"wanted": ["a", ""]}, {"wanted": [""], "acting": [], "memory": {}}],
    "collector/parameters": [{"mass": "heavy"}, {"mass": np.zeros(0)}],
    "hooks": [KeyError, 5],
}


@pytest.mark.parametrize("entry", WRONG)
def test_a_wrong_entry_is_named_and_a_trained_agent_keeps_everything(model, entry):
    live = PPO.load(model)
    live._started()
    before, noise = copied(live._begun().state()), torch.get_rng_state()
    sound = model.read_bytes()
    for value in WRONG[entry]:
        model.write_bytes(sound)
        state = read_checkpoint(change(model, entry, value))
        with pytest.raises(CheckpointError) as caught:
            PPO.load(model)._started()
        assert str(model) in str(caught.value)
        assert "\n" not in str(caught.value)
        named = entry.replace("/", ".").removeprefix("policy.")
        assert any(part in str(caught.value) for part in (named, named.split(".")[0])), caught.value
        with pytest.raises(CheckpointError):
            live._begun().load_state(state)
        assert_same(live._begun().state(), before)
    assert torch.equal(torch.get_rng_state(), noise)
    live.close()


def test_weights_that_are_not_numbers_are_refused(model):
    weights = read_checkpoint(model)["policy"]["head.logits.weight"]
    sound = model.read_bytes()
    for value, message in (
        (weights.fill_(np.nan), "contains NaN or infinity"),
        (weights.double().fill_(0), "has dtype torch.float64, not torch.float32"),
        ("heavy", "must be an array, not 'heavy'"),
    ):
        model.write_bytes(sound)
        change(model, "policy/head.logits.weight", value)
        with pytest.raises(CheckpointError, match=r"head\.logits\.weight " + message):
            PPO.load(model)
    model.write_bytes(sound)
    change(model, "policy/preprocess.normalizers.obs.var", torch.full((4,), -1.0, dtype=torch.float64))
    with pytest.raises(CheckpointError, match=r"normalizers\.obs\.var must not be negative"):
        PPO.load(model)


def test_a_refused_checkpoint_never_trains_from_scratch(model):
    agent = PPO.load(change(model, "progress/step", "x"))
    for _ in range(2):
        with pytest.raises(CheckpointError, match=r"progress\.step must be a whole number"):
            agent.learn(16)
    agent.close()


def test_a_policy_that_was_passed_in_is_unchanged_if_anything_is_wrong(model):
    own = PPO.load(model).policy
    with torch.no_grad():
        own.head.logits.weight.fill_(7.0)
    before = copied(dict(own.state_dict()))
    change(model, "hooks", 5)
    with pytest.raises(CheckpointError, match="hooks must be a dict"):
        PPO.load(model, policy=own)
    assert_same(dict(own.state_dict()), before)


def test_a_best_score_that_is_no_number_is_replaced(run, model):
    shutil.copy(model, run / "best.safetensors")
    change(run / "best.safetensors", "best_score", "great")
    assert RunDirectory(run).best_score("mean_reward") is None


def test_other_spaces_than_the_envs_are_refused_on_resume(run, model):
    change(model, "obs_spec/high", "7.0")
    with pytest.raises(EnvError, match="observation or action space of this env differs"):
        go_on(run, {"train.steps": 64})


@pytest.mark.parametrize(
    "spec",
    [
        *(5, {}, {"keys": 5}, {"keys": {"a": {"keys": {}}}}),
        {"shape": [2**40]},
        {"shape": [2**20, 2**20]},
        {"shape": [-1]},
        {"shape": [1] * 100},
        {"dtype": "object"},
        {"kind": "gas"},
        {"low": "nan"},
        {"low": ["0"] * 3},
        {"low": {}},
        {"sizes": [2]},
    ],
    ids=str,
)
def test_spaces_that_cannot_be_are_refused(model, spec):
    sound = read_checkpoint(model)["obs_spec"]
    is_whole = not isinstance(spec, dict) or "keys" in spec or not spec
    change(model, "obs_spec", spec if is_whole else sound | spec)
    with pytest.raises(CheckpointError, match=model.name):
        PPO.load(model)


# Code of users that refuses what the checks let pass.


class Strict(Hook):
    """Changes itself before it notices that a state is not its own."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = 0

    def after_iteration(self, report: Any) -> None:
        self.seen += 1

    def state(self) -> dict[str, Any]:
        return {"seen": self.seen}

    def load_state(self, state: dict[str, Any]) -> None:
        self.seen = -1
        self.seen = int(state["seen"])


class Fussy(gym.Env[Any, Any]):
    """Refuses a state after it has changed its own."""

    observation_space = gym.spaces.Box(-10.0, 10.0, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self) -> None:
        self.time = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.time = 0
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> Any:
        self.time += 1
        return np.full(1, self.time / 10, np.float32), 1.0, self.time == 50, False, {}

    def save_state(self) -> dict[str, Any]:
        return {"time": self.time}

    def load_state(self, state: dict[str, Any]) -> None:
        self.time = 99
        self.time = 0 + state["time"]


@pytest.mark.parametrize("engine", ["local", "processes"])
def test_an_env_that_refuses_its_state_keeps_the_one_it_had(engine):
    agent = PPO(Fussy, engine=engine, workers=2, **TINY).learn(16)
    run = agent._begun()
    before = copied(run.state())
    state = copied(before)
    state["collector"]["envs"]["envs"][1]["inner"]["own"]["time"] = "late"
    state["policy"]["head.logits.bias"] += 1
    state["progress"]["step"] = 5
    with pytest.raises(CheckpointError, match=r"collector cannot load its state: .*TypeError"):
        run.load_state(state)
    assert_same(run.state(), before)
    agent.learn(16)  # the envs are still there
    agent.close()


def test_a_hook_that_refuses_its_state_keeps_the_one_it_had(tmp_path):
    hook, path = Strict(), tmp_path / "agent.safetensors"
    agent = PPO("CartPole-v1", **TINY)
    agent.learn(32, hooks=[hook])
    assert hook.seen == 2
    run = agent._begun()
    run.prepare(hooks=[hook])
    state = copied(run.state())
    state["hooks"]["Strict"]["seen"] = "x"
    state["policy"]["head.logits.bias"] += 1
    before = copied(run.state())
    with pytest.raises(CheckpointError, match="hooks: Strict cannot load its state: ValueError"):
        run.load_state(state)
    assert_same(run.state(), before)
    write_checkpoint(path, state)
    with pytest.raises(CheckpointError, match="hooks: Strict cannot load its state: ValueError"):
        PPO.load(path).learn(16, hooks=[Strict()])
    agent.close()


def test_a_file_does_not_choose_what_is_set_in_an_env():
    env = gym.make("CartPole-v1")
    env.reset(seed=0)
    snapshot = save_env(env)
    assert snapshot is not None
    snapshot["wrappers"][0]["step"] = 5
    snapshot["inner"] |= {"step": 5, "gravity": 0.0}
    load_env(env, snapshot)
    assert "step" not in vars(env)
    assert env.unwrapped.gravity == 9.8
    assert "step" not in vars(env.unwrapped)


@pytest.mark.parametrize("env_id", ["Acrobot-v1", "AcrobotNoVel-v1", "CartPole-v1"])
def test_a_state_that_would_never_be_stepped_through_is_refused(env_id, tmp_path):
    """Gymnasium's Acrobot subtracts full turns until an angle is small: from 1e17 it never gets there."""
    agent = PPO(env_id, engine="local", **TINY)
    run = agent._begun()
    before = copied(run.state())
    for bad in (1e17, np.nan):
        state = copied(before)
        inner = state["collector"]["envs"]["envs"][0]["inner"]
        inner.get("own", inner)["state"][0] = bad
        with pytest.raises(CheckpointError):
            run.load_state(state)
        assert_same(run.state(), before)
    agent.close()


@pytest.mark.parametrize(
    ("env_id", "entry", "value"),
    [
        ("RepeatPrevious-v0", "shown", [10**9] * 64),
        ("RepeatPrevious-v0", "shown", [0]),
        ("RepeatPrevious-v0", "time", -5),
        ("TMaze-v0", "position", 10**9),
        ("TMaze-v0", "cue", 0.5),
        ("Market-v0", "returns", [0.1]),
        ("Market-v0", "time", 128),
        ("Market-v0", "gain", np.nan),
        ("RiskyCorridor-v0", "cell", -1),
        ("RiskyCorridor-v0", "is_loss", 1),
        ("Probe-v0", "cues", [np.nan]),
        ("Probe-v0", "fuel", np.inf),
    ],
)
def test_the_memory_tasks_check_what_they_load(env_id, entry, value):
    agent = PPO(env_id, engine="local", **TINY)
    run = agent._begun()
    before = copied(run.state())
    state = copied(before)
    state["collector"]["envs"]["envs"][1]["inner"]["own"][entry] = value
    with pytest.raises(CheckpointError, match=f"{entry} must"):
        run.load_state(state)
    assert_same(run.state(), before)
    agent.close()


# Memory.

ABSURD = {
    "config/rollout/num_envs": 10**12,
    "config/rollout/num_steps": 10**12,
    "config/rollout/workers": 10**6,
    "config/policy/hidden": [10**9],
    "config/policy/memory": {"kind": "gru", "hidden_size": 10**6},
    "config/train/steps": 10**400,
    "obs_spec/shape": [10**9],
}


def test_absurd_sizes_are_refused_before_anything_is_allocated(model):
    Process(with_little_memory, 1500, _refuse_absurd_sizes, model).wait().succeeded()


def _refuse_absurd_sizes(model: Path) -> None:
    sound = model.read_bytes()
    for entry, value in {**ABSURD, "config/policy/hidden ": [1] * 100_000}.items():
        model.write_bytes(sound)
        change(model, entry.strip(), value)
        if entry.startswith("config/rollout/num"):  # any batch size divides it
            change(model, "config/ppo/batch_size", 1)
        with pytest.raises(SurefootError):
            PPO.load(model).learn(16)


def test_deep_nesting_is_refused(tmp_path):
    for depth in (101, 900, 5000):
        for opening, closing in (("[", "]"), ('{"a":', "}")):
            text = '{"config": ' + opening * depth + "1" + closing * depth + "}"
            with pytest.raises(CheckpointError, match="forged"):
                read_checkpoint(forge(tmp_path / "forged", metadata(text, version="2")))
    nested: Any = 1
    for _ in range(200):
        nested = [nested]
    with pytest.raises(CheckpointError, match="nested more than 100 levels deep"):
        check_savable({"a": nested})
    read_checkpoint(forge(tmp_path / "forged", metadata(json.dumps({"a": [[[1]]]}), version="2")))


def test_a_state_that_is_no_dict_is_refused(tmp_path):
    for text in ("[]", "[[1, 2]]", '"x"', "null", "1"):
        with pytest.raises(CheckpointError, match="must be a dict"):
            read_checkpoint(forge(tmp_path / "forged", metadata(text, version="2")))


def test_a_config_that_does_not_describe_the_weights_is_refused(model):
    change(model, "config/policy/hidden", [5])
    with pytest.raises(CheckpointMismatchError, match=r"head\.logits\.weight has shape \(2, 4\), not \(2, 5\)"):
        PPO.load(model)
