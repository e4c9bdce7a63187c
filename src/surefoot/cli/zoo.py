"""`surefoot zoo`"""

from collections.abc import Sequence
from itertools import accumulate

from surefoot.cli.lines import LABEL, terminal_width, wrapped
from surefoot.zoo import PREFIX, ZooEntry, rounded, zoo_entries, zoo_entry, zoo_missing

_TITLES = ("policy", "score", "95% interval", "seeds: mean ± std", "steps", "seconds", "env")
_GAP = "  "


def run(name: str | None = None, /) -> int:
    """List the trained policies that come with Surefoot, or show one with the commands that reproduce it.

    Args:
        name: the policy to show, such as Hopper-v5
    """
    if name is not None:
        for line in _details(zoo_entry(name)):
            print(wrapped(line, LABEL))
        return 0
    rows = [_TITLES, *(_row(entry) for entry in zoo_entries().values())]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    widths[0] = max(widths[0], 0, *(len(PREFIX + missing) for missing in zoo_missing()))
    shown = _that_fit(widths)
    for first, *rest in rows:
        cells = [f"{cell:>{width}}" for cell, width in zip(rest, widths[1:], strict=True)]
        print(_GAP.join([f"{first:{widths[0]}}", *cells][:shown]).rstrip())
    for missing, reason in zoo_missing().items():
        print(wrapped(f"{PREFIX}{missing:{widths[0] - len(PREFIX)}}{_GAP}missing: {reason}", widths[0] + len(_GAP)))
    print()
    print(wrapped("'surefoot zoo NAME' shows a policy and the commands that train and evaluate it again", 0))
    return 0


def _that_fit(widths: Sequence[int]) -> int:
    """How many columns fit into the terminal; files and pipes get all."""
    columns, needed = terminal_width(), accumulate(width + len(_GAP) for width in widths)
    if columns is None:
        return len(widths)
    return max(2, sum(total - len(_GAP) <= columns for total in needed))


def _row(entry: ZooEntry) -> tuple[str, ...]:
    low, high = map(rounded, entry.interval)
    return (
        f"{PREFIX}{entry.preset}",
        rounded(entry.mean_reward),
        f"{low} to {high}",
        f"{len(entry.seeds)}: {spread(entry)}",
        f"{entry.steps:,}",
        f"{entry.seconds:,.0f}",
        "" if entry.preset.startswith(entry.env) else entry.env,
    )


def spread(entry: ZooEntry) -> str:
    """Mean and standard deviation of the seeds."""
    std = entry.std_of_seeds
    return rounded(entry.mean_of_seeds) + ("" if std is None else f" ± {rounded(std)}")


def _details(entry: ZooEntry) -> list[str]:
    low, high = map(rounded, entry.interval)
    seeds = ", ".join(f"{rounded(score)} (seed {seed})" for seed, score in entry.seeds.items())
    return [
        f"policy    {PREFIX}{entry.preset}",
        f"env       {entry.env}",
        f"score     {rounded(entry.mean_reward)} ± {rounded(entry.std_reward)} over {entry.episodes} episodes"
        f" (95% interval of the mean {low} to {high})",
        f"seeds     {spread(entry)}: {seeds}; the best one is shipped",
        *([f"published {entry.published}"] if entry.published else []),
        f"training  {entry.steps:,} steps, {entry.seconds:,.0f} seconds on one thread (median of the seeds)",
        f"file      {entry.file}  ({entry.file.stat().st_size / 1000:.0f} kB)",
        f"train     {entry.train}",
        f"evaluate  {entry.evaluate}",
        f"finetune  surefoot train {entry.preset} --from {PREFIX}{entry.preset}",
    ]
