"""Shared by `train` and `resume`: run to the end, then print the results and where the files are."""

from surefoot.compose import describe_rollouts
from surefoot.evaluation.evaluate import Evaluation
from surefoot.run import Run


def finish(run: Run) -> int:
    """Train and print the results; returns the exit code."""
    print(f"rollouts  {describe_rollouts(run.trainer.collector.rows.env, run.trainer.policy)[0]}")
    evaluation, code = run.train()
    directory = run.directory
    assert directory is not None
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
