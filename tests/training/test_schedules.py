"""S14 in whole runs: what each update was made with."""

import math
from typing import Any

import pytest

from surefoot.api import PPO
from surefoot.data.records import IterationReport

LR, CLIP, ENTROPY = 0.001, 0.2, 0.01


class Watch:
    def __init__(self) -> None:
        self.learned: list[Any] = []

    def after_iteration(self, report: IterationReport) -> None:
        self.learned.append(report.learned)


def updates(iterations: int, **settings: Any) -> list[Any]:
    settings = {
        "lr": LR,
        "clip": CLIP,
        "entropy_coef": ENTROPY,
        "hidden": 4,
        "epochs": 1,
        "eval_episodes": 0,
    } | settings
    agent = PPO("CartPole-v1", num_envs=2, num_steps=8, batch_size=16, **settings)
    watch = Watch()
    agent.learn(16 * iterations, hooks=[watch])
    agent.close()
    return watch.learned


def everything(schedule: str) -> dict[str, str]:
    return {"lr_schedule": schedule, "clip_schedule": schedule, "entropy_schedule": schedule}


def test_constant():
    for learned in updates(4, **everything("constant")):
        assert (learned.lr, learned.clip, learned.entropy_coef) == (LR, CLIP, ENTROPY)


def test_linear_starts_whole_and_the_last_update_is_not_at_0():
    made = updates(4, **everything("linear"))
    shares = [1, 3 / 4, 2 / 4, 1 / 4]
    assert [learned.lr for learned in made] == pytest.approx([LR * share for share in shares])
    assert [learned.clip for learned in made] == pytest.approx([CLIP * share for share in shares])
    assert [learned.entropy_coef for learned in made] == pytest.approx([ENTROPY * share for share in shares])


def test_cosine_ends_at_its_floor():
    made = updates(16, **everything("cosine"), schedule_floor=0.2)
    expected = [LR * (0.2 + 0.8 * (1 + math.cos(math.pi * i / 16)) / 2) for i in range(16)]
    assert [learned.lr for learned in made] == pytest.approx(expected)
    assert made[-1].lr == pytest.approx(0.2 * LR, rel=0.05)
    assert min(learned.lr for learned in made) >= 0.2 * LR


def test_the_floor_is_a_tenth_by_default():
    last = updates(16, lr_schedule="cosine")[-1].lr
    assert 0.1 * LR < last < 0.12 * LR


def test_the_rate_follows_the_kl():
    made = updates(6, lr_schedule="kl_adaptive", desired_kl=0.01, epochs=4)
    expected = LR
    for learned in made:
        assert learned.lr == pytest.approx(expected)
        expected *= 1 / 1.5 if learned.approx_kl > 0.02 else 1.5 if learned.approx_kl < 0.005 else 1
    assert made[-1].lr != LR


def test_a_longer_second_part_stretches_the_schedule():
    agent = PPO("CartPole-v1", num_envs=2, num_steps=8, batch_size=16, lr=LR, lr_schedule="linear", eval_episodes=0)
    watch = Watch()
    agent.learn(32, hooks=[watch]).learn(32, hooks=[watch])
    agent.close()
    assert [learned.lr for learned in watch.learned] == pytest.approx([LR, LR / 2, LR / 2, LR / 4])
