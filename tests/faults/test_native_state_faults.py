"""Forged states of native envs: refused with a typed error, and every env keeps what it had."""

from pathlib import Path

import numpy as np
import pytest

from surefoot import PPO
from surefoot.envs import native
from surefoot.envs.make import make_vec_env
from surefoot.envs.protocol import new_slot
from surefoot.errors import CheckpointError, NativeError
from surefoot.native import core
from surefoot.settings.config import EnvConfig, RolloutConfig
from surefoot.training.checkpoint import read_checkpoint, write_checkpoint

WORDS, COUNTED = 4, 5
"""A state begins with the words of the generator and the steps of the episode."""
ODD = (np.nan, np.inf, -np.inf, 1e300, -1e300, 1e17, 1e9, -5.0, 0.5)


def stepped(env_id: str, num_envs: int = 2, steps: int = 3, **kwargs):
    envs = native.make(env_id, num_envs, threads=1, **kwargs)
    envs.reset(seed=3)
    envs.action_space.seed(4)
    for _ in range(steps):
        envs.step(envs.action_space.sample())
    return envs


def test_every_native_env_refuses_forged_numbers_and_changes_nothing():
    for env_id in native.native_ids():
        envs = stepped(env_id)
        saved = envs.save_state()
        random = np.random.default_rng(0)
        columns = np.arange(WORDS, min(COUNTED + 8, saved.shape[1]))  # in MuJoCo tasks: time, qpos, qvel, ...
        for column in columns:
            for value in (np.nan, np.inf, -np.inf):
                forged = saved.copy()
                forged[1, column] = value
                with pytest.raises(NativeError, match="these envs cannot continue from the state: env 1: "):
                    envs.load_state(forged)
                assert envs.save_state().tobytes() == saved.tobytes(), (env_id, column, value)
        for value in ODD:  # taken or refused, it can be stepped
            forged = saved.copy()
            forged[0, random.choice(columns)] = value
            try:
                envs.load_state(forged)
            except NativeError:
                assert envs.save_state().tobytes() == saved.tobytes()
            envs.step(envs.action_space.sample())
            envs.load_state(saved)


@pytest.mark.parametrize(
    ("env_id", "column", "value", "said"),
    [
        ("RepeatPrevious-v0", COUNTED + 10, 1e9, "env 1: symbol is 1e+09; it must be a whole number from 0 to 3"),
        ("RepeatPrevious-v0", COUNTED, -5.0, "env 1: symbol is -5; it must be a whole number from 0 to 3"),
        ("RepeatPrevious-v0", COUNTED + 64, 64.0, "env 1: time is 64; it must be a whole number from 0 to 63"),
        ("TMaze-v0", COUNTED, 0.5, "env 1: cue is 0.5; it must be -1 or 1"),
        ("TMaze-v0", COUNTED + 1, 1e9, "env 1: position is 1e+09; it must be a whole number from 0 to 50"),
        ("Market-v0", COUNTED, 128.0, "env 1: time is 128; it must be a whole number from 0 to 127"),
        ("Market-v0", COUNTED + 1, 2.0, "env 1: position is 2; it must be from -1 to 1"),
        ("RiskyCorridor-v0", COUNTED, 7.0, "env 1: cell is 7; it must be a whole number from 0 to 6"),
        ("Acrobot-v1", COUNTED, 1e17, "env 1: angle[0] is 1e+17; it must be from -3.14159 to 3.14159"),
        ("Acrobot-v1", COUNTED + 4, 2.0, "env 1: is_fresh is 2; it must be 0 or 1"),
        ("CartPole-v1", COUNTED - 1, 0.5, "env 1: steps of the episode is 0.5; it must be a whole number from 0"),
        ("HalfCheetah-v5", COUNTED + 1, np.nan, "env 1: qpos[0] is nan; it must be finite"),
        ("Reacher-v5", 3, 0.0, "env 1: the increment of the random generator must be odd"),
    ],
)
def test_the_error_names_env_field_value_and_what_it_must_be(env_id, column, value, said):
    env = make_vec_env(env_id, EnvConfig(id=env_id), 2, 1, RolloutConfig(engine="native", workers=1))
    env.reset(new_slot(env.num_rows, env.obs_spec, env.mask_size))
    before = env.save_state()
    rows = before["rows"].copy()
    rows.view(np.float64)[1, column] = value
    with pytest.raises(CheckpointError) as caught:
        env.load_state({"rows": rows})
    assert f"cannot continue from their saved state: {said}" in str(caught.value)
    assert np.array_equal(env.save_state()["rows"], before["rows"])


@pytest.mark.parametrize(
    "rows", [None, "rows", [[1, [2]], [3, 4]], np.zeros((2, 9)), np.zeros((2, 3), np.int64), np.zeros(0, np.int64)]
)
def test_states_of_another_kind_or_shape_are_refused(rows):
    env = make_vec_env("CartPole-v1", EnvConfig(), 2, 1, RolloutConfig(engine="native"))
    with pytest.raises(CheckpointError, match=r"int64 array 'rows'|state must have shape"):
        env.load_state({} if rows is None else {"rows": rows})


def test_a_forged_checkpoint_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "agent.safetensors"
    PPO("RepeatPrevious-v0", num_envs=2, num_steps=8, batch_size=16, seed=1).learn(16).save(path)
    state = read_checkpoint(path)
    rows = state["collector"]["envs"]["rows"].copy()
    rows.view(np.float64)[0, COUNTED : COUNTED + 64] = 1e9
    state["collector"]["envs"]["rows"] = rows
    write_checkpoint(path, state)  # with the right checksum
    with pytest.raises(CheckpointError, match="env 0: symbol is 1e\\+09"):
        PPO.load(path).learn(16)


def test_seeds_that_would_draw_the_same_number_forever_are_refused():
    envs = native.make("Reacher-v5", 1)  # draws goals until one is near enough
    engine = envs._open()
    obs = [np.zeros((1, size)) for size in engine.obs_sizes]
    with pytest.raises(ValueError, match="increment of the random generator must be odd"):
        engine.reset(np.zeros((1, 4), np.uint64), obs, None)


def test_steps_after_the_end_of_an_episode_stay_inside_it():
    engine = core().Engine("RepeatPrevious-v0", {}, 1, 1, 0)
    engine.reset(None, [np.zeros((1, 5))], None)
    engine.replay(np.zeros((5000, 1, 1), np.int64), np.zeros((5000, 1), bool))  # an end that nobody recorded
    assert engine.save()[0, COUNTED + 64] == 64


def test_what_a_simulation_derived_may_be_nan_because_a_diverged_one_saves_it_and_recovers():
    envs = native.make("Walker2d-v5", 1, reset_noise_scale=6e123)
    envs.reset(seed=3)
    saved = envs.save_state()
    assert np.isnan(saved[:, COUNTED:]).any()
    envs.load_state(saved)
    assert envs.save_state().tobytes() == saved.tobytes()
    assert np.isfinite(envs.step(np.zeros((1, 6), np.float32))[0]).all()
