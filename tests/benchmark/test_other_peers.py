"""skrl and RSL-RL: they run, learn with the task's numbers, and count what they execute."""

from importlib.util import find_spec
from typing import Any

import gymnasium as gym
import pytest
import torch

from benchmarks import tasks
from benchmarks.peers import PEERS
from benchmarks.tasks import TASKS, Task
from surefoot.learning.native_learner import NativeLearner

needs_skrl = pytest.mark.skipif(find_spec("skrl") is None, reason="skrl (extra 'peers') is not installed")
needs_rsl_rl = pytest.mark.skipif(find_spec("rsl_rl") is None, reason="rsl-rl-lib (extra 'peers') is not installed")
CASES = [
    pytest.param("skrl", "CartPole-v1", marks=needs_skrl),
    pytest.param("skrl", "InvertedPendulum-v5", marks=needs_skrl),
    pytest.param("rsl-rl", "InvertedPendulum-v5", marks=needs_rsl_rl),
]


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.parametrize(("name", "env_id"), CASES)
def test_whole_iterations(name: str, env_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many optimizer steps as the task says, and both phases have their time."""
    task = Task("tiny", env_id, 4, 16, 2, 4, (4,))
    taken = count_optimizer_steps(monkeypatch)
    with torch.random.fork_rng(devices=[]):
        peer = PEERS[name](task, threads=1)
        try:
            first, second = peer.run(1), peer.run(2)
        finally:
            peer.close()
    assert (first.steps, second.steps) == (64, 128)
    assert min(first.rollout_s, first.learn_s, second.rollout_s, second.learn_s) > 0
    assert len(taken) == 3 * task.epochs * task.num_minibatches
    for group in taken:
        assert (group["lr"], group["eps"]) == (tasks.LEARNING_RATE, tasks.ADAM_EPS)


def count_optimizer_steps(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Rates and epsilons of all steps; ours are in the core, those of the others in torch's Adam."""
    taken: list[dict[str, Any]] = []
    step = torch.optim.Adam.step

    def counted(self: torch.optim.Adam, *arguments: Any) -> Any:
        taken.append(dict(self.param_groups[0]))
        return step(self, *arguments)

    run_epochs = NativeLearner._run_epochs

    def counted_epochs(self: NativeLearner, samples: Any, knobs: Any) -> Any:
        before = self.gradient.count
        watch = run_epochs(self, samples, knobs)
        constants = {"lr": knobs.lr, "eps": self._optimizer["epsilon"]}
        taken.extend([constants] * (self.gradient.count - before))
        return watch

    monkeypatch.setattr(torch.optim.Adam, "step", counted)
    monkeypatch.setattr(NativeLearner, "_run_epochs", counted_epochs)
    return taken


def test_who_can_do_which_task() -> None:
    fitting = {name: {task for task in TASKS if PEERS[name].fits(TASKS[task])} for name in ("skrl", "rsl-rl")}
    assert fitting["skrl"] == set(TASKS) - {"masked-16", "cartpole-memory-8"}
    assert fitting["rsl-rl"] == {
        name for name in fitting["skrl"] if isinstance(gym.make(TASKS[name].env).action_space, gym.spaces.Box)
    }
