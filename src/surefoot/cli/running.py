"""Shared by `train` and `resume`: run to the end, then print the results and where the files are."""

from contextlib import closing, nullcontext

from surefoot.compose import Specs, build_env, build_policy, build_trainer, describe_rollouts
from surefoot.core.config import Config
from surefoot.core.ranks import ALONE, Ranks
from surefoot.envs.protocol import VecEnv
from surefoot.evaluation.evaluation import Evaluation
from surefoot.run import Run
from surefoot.telemetry.console import warnings_on_stderr
from surefoot.training.run_directory import RunDirectory


def train_from_start(config: Config, directory: RunDirectory | None, ranks: Ranks = ALONE, preset: str = "") -> int:
    """Start a run in a directory, which the first of several processes has; returns the exit code."""
    with closing(training_envs(config, ranks)) as env:
        # Built before the directory, so that invalid combinations leave no empty run behind.
        specs = Specs(env.obs_spec, env.action_spec)
        trainer = build_trainer(config, env, build_policy(config, specs), ranks)
        with directory or nullcontext():
            if directory is not None:
                directory.write_config(config)
                if preset:
                    print(f"preset    {preset}", flush=True)
            return finish(Run(trainer, config, specs, None, directory, ranks=ranks))


def training_envs(config: Config, ranks: Ranks) -> VecEnv:
    """The envs of a run that is about to begin; there is no log yet for what they warn about."""
    with warnings_on_stderr():
        return build_env(config, ranks=ranks)


def finish(run: Run) -> int:
    """Train and print the results; returns the exit code."""
    if run.ranks.is_first:
        if run.ranks.size > 1:
            print(f"processes {run.ranks.size}")
        print(f"rollouts  {describe_rollouts(run.trainer.collector.rows.env, run.trainer.policy)[0]}")
        print(f"learning  {run.trainer.learner.description}")
    try:
        evaluation, code = run.train()
    finally:
        with warnings_on_stderr():  # the run is saved: what an env does now costs a warning
            run.envs.close()
    directory = run.directory
    if directory is None:  # not the first of several processes
        return code
    step = run.trainer.progress.step
    if code:
        print(f"stopped at step {step}; 'surefoot resume {directory.path}' continues the run")
        return code
    print(f"trained {step:,} steps")
    if evaluation is not None:
        print(f"evaluated {describe(evaluation)}")
    has_events = run.config.log.tensorboard
    print(f"run       {directory.path}  (config.yaml, metrics.jsonl, log.txt{', TensorBoard events' * has_events})")
    newest = directory.saved()
    if newest:
        print(f"newest    {newest[0]}")
    if directory.best.exists():
        print(f"best      {directory.best}")
    print(f"next      surefoot evaluate|doctor|report {directory.path}")
    if has_events:
        print(f"          tensorboard --logdir {directory.path.parent}")
    return 0


def describe(evaluation: Evaluation) -> str:
    """An evaluation in one readable line."""
    low, high = evaluation.interval()
    return (
        f"{evaluation.mean_reward:.1f} ± {evaluation.std_reward:.1f} over {len(evaluation.rewards)} episodes"
        f" (95% interval of the mean {low:.1f} to {high:.1f}), length {evaluation.mean_ep_length:.0f}"
        + "".join(f", {name} {_shown(evaluation.mean_metric(name))}" for name in evaluation.metrics)
    )


def _shown(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.4g}"
