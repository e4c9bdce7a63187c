"""A graph that acts otherwise than its policy is found out, whatever the difference is."""

from functools import partial

import numpy as np
import onnxruntime
import pytest
import torch
from gymnasium import spaces

from surefoot.compose import build_env
from surefoot.errors import ExportError
from surefoot.export import parity
from surefoot.export.deployed import Deployed, acting_copy
from surefoot.export.graph import build_graph
from surefoot.policies import actor_critic as policies
from tests.export.agents import LENGTH, Noise, agent

pytestmark = pytest.mark.xdist_group("export")

ENV = partial(Noise, spaces.Box(-3, 3, (5,)), spaces.Discrete(3, start=1))


@pytest.fixture(scope="module")
def made():
    return agent(ENV, policy={"memory": {"kind": "gru", "hidden_size": 4}})


@pytest.fixture(scope="module")
def session_that_never_forgets(made):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(policies, "_forgotten", lambda state, episode_start: state)
        model = build_graph(Deployed(acting_copy(made.policy), made.specs.obs, 0), {})
    assert "episode_start" not in [part.name for part in model.graph.input]
    return onnxruntime.InferenceSession(model.SerializeToString())


def check(made, policy, session):
    env = build_env(made.config, ENV, 0, 2)
    try:
        return parity.check_parity(policy, session, env, parity.TOLERANCE)
    finally:
        env.close()


def test_what_is_remembered_into_the_next_episode_is_found(made, session_that_never_forgets):
    with pytest.raises(ExportError, match=rf"in 'next_state_0' at step {LENGTH}, .*nothing was written"):
        check(made, acting_copy(made.policy), session_that_never_forgets)


def test_an_episode_without_end_is_cut_off_and_the_next_one_seen(made, session_that_never_forgets, monkeypatch):
    monkeypatch.setattr(parity, "LONGEST_EPISODE", 7)
    with pytest.raises(ExportError, match=r"in 'next_state_0' at step 7, "):
        check(made, acting_copy(made.policy), session_that_never_forgets)


def test_other_weights_are_found(made, session_that_never_forgets):
    other = acting_copy(made.policy)
    other.head.logits.bias[1] += 1e-3
    with pytest.raises(ExportError, match=r"in 'distribution/log_probs' at step 0, "):
        check(made, other, session_that_never_forgets)


def test_equally_good_choices_are_no_difference(made):
    policy = acting_copy(made.policy)
    policy.head.logits.weight.zero_()
    obs, start = torch.zeros(2, 5), torch.ones(2, dtype=torch.bool)
    chosen = {"action": np.array([2, 3])}

    def difference(*bias: float) -> float:
        policy.head.logits.bias.copy_(torch.tensor(bias))
        output = policy(obs, policy.initial_state(2), start)
        return parity._differences(policy, output, chosen, made.specs.action)["action"]

    assert difference(0.5, 0.5, 0.5) == 0
    assert difference(0.5, 0.5, 0.4) == pytest.approx(0.1 / 1.1, rel=0.1)


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        ([1.0, 0.5], [1.0, 0.25], 0.25),
        ([100.0], [101.0], 0.01),
        ([0.0], [np.nan], np.inf),
        ([np.nan], [np.nan], np.inf),
        ([-np.inf], [-np.inf], 0.0),
        ([1.0, 2.0], [1.0], np.inf),
    ],
)
def test_differences_are_relative_above_one(ours, theirs, expected):
    assert parity._difference(torch.tensor(ours), np.array(theirs), np.ones(())) == pytest.approx(expected)
