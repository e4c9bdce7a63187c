"""Walks the first hour of a new user: `python -m tests.newcomer [--venv .venv] [--folder walk] [--only NAME ...]`.

Without `--venv`, this clone is copied and installed into a new environment, as README says. With it, an existing
environment with the extra `dev` is used, which saves the installation. Videos, frames, pages and screenshots stay in
the folder for a person to look at.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.newcomer.place import Place, Walked
from tests.newcomer.readme import ROOT, SKIPPED, readme_commands
from tests.newcomer.steps import STEPS

TAIL = 12
"""Lines of output that are shown of a step; all of them if it fails."""


def main() -> int:
    """Walk all steps; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.newcomer", description=__doc__)
    parser.add_argument("--venv", type=Path, help="an environment to use instead of a new one")
    parser.add_argument("--folder", type=Path, help="where runs, videos and pages are written; default: a new one")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="only steps whose names contain one of these")
    given = parser.parse_args()
    folder = (given.folder or Path(tempfile.mkdtemp(prefix="newcomer-"))).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    place = _place(given.venv, folder)
    walked = []
    for step in STEPS:
        is_wanted = not given.only or any(name in step.name for name in given.only)
        if is_wanted and not (given.venv and step.only_new_venv):
            print(f"\n== {step.name}", flush=True)
            walked.append(place.walk(step))
            _show(walked[-1])
    return _conclude(walked, folder)


def _place(venv: Path | None, folder: Path) -> Place:
    if venv is not None:
        return Place(ROOT, venv.absolute(), folder)
    clone = folder / "clone"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    return Place(clone, clone / "venv", folder)


def _show(walked: Walked) -> None:
    lines = walked.output.rstrip().splitlines()
    print(f"$ {walked.command or walked.step.command}")
    shown = lines if walked.problem else lines[-TAIL:]
    print("\n".join(f"  {line}" for line in shown))
    print(f"{f'FAILED: {walked.problem}' if walked.problem else 'ok'}, {walked.seconds:.1f} s", flush=True)


def _conclude(walked: list[Walked], folder: Path) -> int:
    """Print the summary; returns the exit code."""
    print("\n== summary")
    for done in walked:
        print(f"{'FAILED' if done.problem else 'ok':7s}{done.seconds:7.1f} s  {done.step.name}")
    for line, reason in SKIPPED.items():
        if line in readme_commands():
            print(f"{'skipped':18s}README: {line} ({reason})")
    failed = [done for done in walked if done.problem]
    print(f"{len(walked) - len(failed)} of {len(walked)} steps ok, {sum(done.seconds for done in walked):.0f} s")
    print(f"look at   {folder / 'videos'} and {folder / 'pages'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
