"""From a module's name to parallel envs, and what is said if that fails."""

import pickle
import sys

import pytest

from surefoot.envs.adapters.pettingzoo_factory import pettingzoo_factory
from surefoot.errors import EnvError
from surefoot.settings.config import EnvConfig


def test_the_configured_env():
    config = EnvConfig(kwargs={"N": 2}, max_episode_steps=4)
    env = pettingzoo_factory("mpe2.simple_spread_v3", config)()
    assert env.possible_agents == ["agent_0", "agent_1"]
    env.reset(seed=1)
    for _ in range(4):
        assert env.agents
        _, _, _, truncations, _ = env.step(dict.fromkeys(env.agents, 0))
    assert truncations == {"agent_0": True, "agent_1": True}


def test_it_travels_to_other_processes():
    factory = pickle.loads(pickle.dumps(pettingzoo_factory("mpe2.simple_spread_v3", EnvConfig(kwargs={"N": 4}))))
    assert len(factory().possible_agents) == 4


@pytest.mark.parametrize(
    ("module", "message"),
    [
        ("mpe2.simple_spred_v3", "no module named 'mpe2.simple_spred_v3'; did you mean 'mpe2.simple_spread_v3'?"),
        ("mpe2.nothing_like_it", "no module named 'mpe2.nothing_like_it'"),
        (
            "mpe3.simple_spread_v3",
            "no module named 'mpe3'; install the package 'mpe3' (for PettingZoo and MPE2, run",
        ),
        ("mpe2.simple_spread_v3.more", "no module named 'mpe2.simple_spread_v3.more'"),
        ("mpe2", "module 'mpe2' has no parallel_env(); use one that has, such as 'mpe2.simple_spread_v3'"),
        ("pettingzoo.mpe.simple_v3", "'pettingzoo:pettingzoo.mpe.simple_v3' could not be imported: MPE has been moved"),
        ("pettingzoo.butterfly.pistonball_v6", "requires the package 'pymunk', which is not installed"),
        ("", "could not be imported"),
        (".relative", "could not be imported"),
    ],
)
def test_modules_that_cannot_be_used_are_refused_at_once(module, message):
    if "pymunk" in message:
        with pytest.raises(ImportError):
            import pymunk  # noqa: F401
    with pytest.raises(EnvError) as caught:
        pettingzoo_factory(module, EnvConfig())
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_without_pettingzoo_the_extra_is_named(monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] in ("pettingzoo", "mpe2")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pettingzoo", None)
    with pytest.raises(EnvError, match=r"requires PettingZoo; run `pip install .*'\.\[pettingzoo\]'"):
        pettingzoo_factory("mpe2.simple_spread_v3", EnvConfig())


def test_arguments_that_an_env_does_not_take():
    factory = pettingzoo_factory("mpe2.simple_spread_v3", EnvConfig(kwargs={"number": 3}))
    with pytest.raises(
        EnvError, match=r"'pettingzoo:mpe2.simple_spread_v3' does not accept the arguments .*'number': 3.*number"
    ):
        factory()
