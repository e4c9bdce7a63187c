"""A script as a user writes it, for `mypy --strict` against the installed package: the types must be found and fit."""

from dataclasses import dataclass

import gymnasium as gym
from torch import Tensor, nn

from surefoot import (
    PPO,
    Attack,
    Config,
    Critic,
    Encoder,
    Estimator,
    Evaluation,
    Hook,
    IterationReport,
    Knob,
    Knobs,
    Learned,
    Minibatch,
    PartSettings,
    Progress,
    Rollout,
    RunContext,
    Schedule,
    SurefootError,
    Targets,
    Term,
    TermLoss,
    ValueTargets,
    __version__,
)


class StopEarly(Hook):
    """A hook with records of a run."""

    def after_rollout(self, rollout: Rollout) -> None:
        assert rollout.reward.shape == rollout.value.shape

    def after_iteration(self, report: IterationReport) -> None:
        learned: Learned = report.learned
        run: RunContext = self.run
        config: Config = run.config
        if learned.approx_kl > 1 or config.ppo.gamma == 0:
            run.stop("the policy changes too fast")


class Penalty(Term):
    """A term of the objective."""

    class Settings(PartSettings):
        weight: Knob = 0.1

    def loss(self, minibatch: Minibatch) -> TermLoss:
        return TermLoss(minibatch.log_ratio.square().mean(), {"largest": minibatch.log_ratio.abs().amax()})


class Halving(Schedule):
    """A schedule."""

    def value(self, progress: Progress) -> float:
        return self.start * 0.5**progress.iteration


class Rewards(Estimator):
    """An estimator."""

    def estimate(self, rollout: Rollout, critic: Critic) -> Targets:
        return Targets(rollout.reward - rollout.value, rollout.reward)


class Squared(Critic):
    """The loss of a critic."""

    def loss(self, prediction: Tensor, targets: ValueTargets) -> Tensor:
        return nn.functional.mse_loss(prediction, targets.returns)


@dataclass
class Result:
    """What the script returns."""

    score: float
    interval: tuple[float, float]
    worst: float


def report_entropy(report: IterationReport) -> None:
    """A function as a hook."""
    print(report.progress.step, report.learned.entropy)


def train(steps: int) -> Result:
    """Train, save, load and evaluate."""
    agent: PPO = PPO(lambda: gym.make("CartPole-v1"), seed=1, gamma=0.98).learn(
        steps, hooks=[StopEarly(), report_entropy]
    )
    agent.save("agent.safetensors")
    try:
        agent = PPO.load("agent.safetensors", env="CartPole-v1")
    except SurefootError as error:
        raise SystemExit(error.exit_code) from error
    action, state = agent.predict([0.0, 0.1, 0.0, -0.1])
    evaluation: Evaluation = agent.evaluate(episodes=5, attack=Attack("pgd", epsilon=0.1))
    print(__version__, action, state, Knobs(lr=1e-3).lr, Encoder, Penalty, Halving, Rewards, Squared)
    return Result(evaluation.mean_reward, evaluation.interval(), evaluation.cvar())


if __name__ == "__main__":
    print(train(2_000))
