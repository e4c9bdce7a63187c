"""`surefoot compare RUN ...`"""

import json as json_format
from pathlib import Path
from typing import Literal

from surefoot.cli.arguments import Switch
from surefoot.cli.lines import tell
from surefoot.errors import ConfigError

FILE_NAME = "compare.html"


def run(
    runs: tuple[Path, ...] = (),
    /,
    names: tuple[str, ...] = (),
    score: Literal["final", "best"] = "final",
    metric: str = "mean_reward",
    normalize: str = "none",
    json: Switch = False,
    output: Path | None = None,
) -> int:
    """Compare groups of runs: mean, interquartile mean and median with bootstrap intervals, and which group is better.

    Args:
        runs: run directories, or folders with several seeds; runs that differ only in their seed form a group
        names: the group of each of them, in order, instead of grouping by settings
        score: the last evaluation of a run, or its best one
        metric: the metric of an evaluation: mean_reward, cvar, ...; -metric where lower is better
        normalize: scale of scores over several tasks: none, minmax, or a YAML file with two reference scores per
            task
        json: print JSON, and write a page only with --output
        output: the page to write; default: compare.html in the current directory
    """
    from surefoot.cli.report import refuse_other_file, write_page
    from surefoot.inspection.compare.comparison import compare
    from surefoot.inspection.compare.page import compare_page
    from surefoot.inspection.compare.scores import Measure
    from surefoot.inspection.compare.table import print_comparison
    from surefoot.inspection.report.reported_run import with_distinct_names
    from surefoot.inspection.run_record import read_run
    from surefoot.inspection.seeds_folder import runs_of

    if not runs:
        raise ConfigError("no run directory given; pass at least one, such as runs/CartPole-v1-seeds")
    if names and len(names) != len(runs):
        raise ConfigError(f"--names: pass one name per run or folder: {len(runs)}, not {len(names)}")
    target = output or (None if json else Path(FILE_NAME))
    if target is not None:
        refuse_other_file(target)
    named = [
        (path, name) for one, name in zip(runs, names or ("",) * len(runs), strict=True) for path in runs_of([one])
    ]
    once = list({path.resolve(): (path, name) for path, name in named}.values())
    read = with_distinct_names([read_run(path) for path, _ in once])
    found = compare(read, Measure(metric, score), normalize, [name for _, name in once] if names else ())
    if json:
        print(json_format.dumps(found.to_json(), indent=1))
    else:
        print_comparison(found)
    if target is not None:
        text = compare_page(found)
        write_page(target, text)
        if not json:
            tell("page", f"{target}  ({len(text.encode()) / 1e6:.1f} MB; open it in a browser)")
    return 0
