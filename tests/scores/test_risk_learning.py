"""Risk changes behavior: agents with another objective take another way, and hold what closed forms say."""

from typing import Any

import numpy as np
import pytest

from surefoot import PPO

CVAR = {"kind": "risk", "alpha": 0.1}
INVESTOR = {
    **{"process": "student_t", "degrees": 5, "drift": 0.5, "volatility": 0.5, "exposure_cost": 0.5},
    **{"turnover_cost": 0, "horizon": 1, "window": 0, "low": 0, "high": 2, "bankrupt_below": -1e6},
}


@pytest.mark.parametrize("seed", [0, 3])
@pytest.mark.parametrize(("estimator", "risky"), [("gae", 1.0), (CVAR, 0.0)], ids=["mean", "CVaR"])
def test_the_way_through_the_corridor(estimator: Any, risky: float, seed: int):
    agent = PPO("RiskyCorridor-v0", estimator=estimator, normalize={"returns": True}, seed=seed, eval_episodes=0)
    agent.learn(60_000)
    assert agent.evaluate(episodes=20).mean_metric("risky") == risky
    agent.close()


@pytest.mark.parametrize(
    ("objective", "exposure"), [({"beta": 0.0}, 1.0), ({"beta": 0.25}, 0.554), ({"limit": -0.4}, 0.7045)]
)
def test_the_exposure_of_the_one_step_investor(objective: dict[str, float], exposure: float):
    """Within 0.12 after a short run; benchmarks/risk.py trains longer and is closer."""
    agent = PPO(
        "Market-v0",
        kwargs=INVESTOR,
        truncation_as_termination=True,
        policy={"memory": "none", "hidden": (16,), "distribution": {"kind": "gaussian", "log_std": -1.0}},
        normalize={"obs": False, "returns": True},
        ppo={"gamma": 1.0, "epochs": 4, "batch_size": 1024, "entropy_coef": 0.0, "estimator": CVAR | objective},
        optimizer={"lr": 3e-3},
        rollout={"num_envs": 128, "num_steps": 32},
        eval_episodes=0,
    )
    agent.learn(400_000)
    action, _ = agent.predict(np.array([0.0, 0.0, 1.0], dtype=np.float32))
    assert float(action[0]) == pytest.approx(exposure, abs=0.12)
    agent.close()
