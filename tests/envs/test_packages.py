"""Ids that no package has registered, and packages that are not installed."""

import importlib.util

import pytest

from surefoot.cli.main import main
from surefoot.envs.adapters import gymnasium_factory
from surefoot.envs.adapters.gymnasium_factory import GymnasiumFactory
from surefoot.envs.make import env_factory
from surefoot.envs.packages import package_hint
from surefoot.errors import EnvError
from surefoot.settings.config import EnvConfig


@pytest.mark.parametrize(
    ("env_id", "module", "install"),
    [
        ("highway-fast-v0", "highway_env", "highway-env"),
        ("parking-ActionRepeat-v0", "highway_env", "highway-env"),
        ("FetchReachDense-v4", "gymnasium_robotics", "gymnasium-robotics"),
        ("PandaPickAndPlace-v3", "panda_gym", "panda-gym"),
        ("dm_control/cheetah-run-v0", "shimmy", r"'shimmy\[dm-control\]'"),
        ("Meta-World/MT1", "metaworld", "metaworld"),
    ],
)
def test_an_id_of_a_package_that_is_not_installed_says_what_to_install(env_id, module, install):
    with pytest.raises(EnvError, match=rf"run `pip install {install}`, then use the id '{module}:{env_id}'"):
        env_factory(env_id, EnvConfig())
    with pytest.raises(EnvError, match=rf"requires {install}; run `pip install {install}`"):
        env_factory(f"{module}:{env_id}", EnvConfig())


def test_an_installed_package_needs_only_its_prefix(capsys):
    assert package_hint("MiniGrid-Empty-5x5-v0").endswith("minigrid: use the id 'minigrid:MiniGrid-Empty-5x5-v0'")
    assert main(["train", "MiniGrid-Empty-9x9-v0"]) == 2
    assert "use the id 'minigrid:MiniGrid-Empty-9x9-v0'" in capsys.readouterr().err


def test_other_ids_have_no_hint():
    for known in ("CartPole-v1", "CartPole-v7", "Pong-v5", "LunarLander-v2", "my-env-v0"):
        assert not package_hint(known)
    with pytest.raises(EnvError, match="did you mean 'LunarLander-v3'"):
        env_factory("LunarLander-v2", EnvConfig())


def test_a_missing_dependency_of_gymnasium_names_our_extra(monkeypatch):
    def without_box2d(*args, **kwargs):
        raise gymnasium_factory.gym.error.DependencyNotInstalled(
            'Box2D is not installed, you can install it by run `pip install swig` and `pip install "gymnasium[box2d]"`'
        )

    monkeypatch.setattr(gymnasium_factory.gym, "make", without_box2d)
    with pytest.raises(EnvError, match=r"it requires Box2D; run `pip install .*\.\[box2d\]'"):
        GymnasiumFactory("LunarLander-v3", {}, None, None)()


def test_the_packages_that_tests_take_for_missing_are():
    assert all(importlib.util.find_spec(name) is None for name in ("highway_env", "gymnasium_robotics", "panda_gym"))
