"""Tolerances grow with how much a policy makes of a rounding."""

from copy import deepcopy
from dataclasses import replace

import pytest
import torch

from surefoot.settings.layers import build_config
from surefoot.verification.legs import Leg
from surefoot.verification.protocol import journey
from surefoot.verification.rounding import slack
from surefoot.verification.subject import Subject


@pytest.fixture(scope="module")
def leg() -> Leg:
    subject = Subject(build_config({"env.id": "Pendulum-v1"})).sized()
    return journey(subject, "local", legs=1)[0]


def test_a_plain_policy_needs_no_slack(leg: Leg) -> None:
    assert slack(leg) == 1


@torch.no_grad()
def test_slack_grows_with_how_steep_a_policy_is(leg: Leg) -> None:
    found = []
    for gain in (1.0, 1e3):
        policy = deepcopy(leg.policy)
        for name, parameter in policy.named_parameters():
            if "trunk.layers.0.weight" in name:
                parameter.mul_(gain)
        found.append(slack(replace(leg, policy=policy)))
    assert found[0] == 1
    assert 2 < found[1] <= 100
