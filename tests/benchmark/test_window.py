"""Rates by hand."""

from surefoot.benchmark.subject import Window


def test_rates() -> None:
    window = Window(iterations=4, steps=1000, rollout_s=2.0, learn_s=3.0)
    assert (window.total_s, window.steps_per_s, window.rollout_steps_per_s) == (5.0, 200.0, 500.0)
    assert (window.rollout_ms, window.learn_ms) == (500.0, 750.0)
    assert window.step_us == 2000.0
