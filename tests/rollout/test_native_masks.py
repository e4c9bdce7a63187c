"""A mask that forbids everything is the same error whoever steps the envs, the core included."""

import pytest

import surefoot
from surefoot.errors import EnvError


def error_of(engine: str, kind: str) -> str:
    settings = {"env.kwargs": {"action": kind, "forbids_below": 3.5}, "rollout.engine": engine}
    sizes = {"rollout": {"num_envs": 3, "num_steps": 32}, "ppo": {"batch_size": 32, "epochs": 1}}
    agent = surefoot.PPO("Probe-v0", seed=4, policy={"hidden": [4]}, **sizes, **settings)
    try:
        agent.learn(96)
    except EnvError as error:
        return str(error)
    finally:
        agent.close()
    return ""


@pytest.mark.parametrize("kind", ["discrete", "multi_discrete"])
def test_a_mask_that_forbids_everything_names_the_env(kind: str) -> None:
    native = error_of("native", kind)
    assert " returned an action mask that forbids every action at step " in native
    assert native.startswith("env ")
    assert native == error_of("local", kind)


@pytest.mark.parametrize("kind", ["multi_binary", "box"])
def test_kinds_that_need_no_choice(kind: str) -> None:
    assert error_of("native", kind) == ""
