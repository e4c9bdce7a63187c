"""`surefoot sweep CONFIG --run-dir DIR ...`"""

from pathlib import Path

from surefoot.cli.arguments import parse, print_settings, split_settings, wants_help
from surefoot.cli.lines import tell, tell_next


def main(arguments: list[str]) -> int:
    """Parse, then run the sweep."""
    rest, settings = split_settings(arguments)

    def sweep(config: str, /, run_dir: Path | None = None, preset: str | None = None) -> int:
        """Search for good settings: many runs, each with other values of the tunable settings.

        The same command continues a sweep that was stopped or killed; finished trials are kept.

        Args:
            config: a YAML file with the settings of a run and a section 'sweep' (docs/sweeps.md), or a preset
                ('recurrent')
            run_dir: directory of the sweep; default: runs/sweep-<name>
            preset: a preset other than that of the environment, or none
        """
        from surefoot.sweep.directory import BEST
        from surefoot.sweep.presets import sweep_presets
        from surefoot.sweep.settings import read_settings
        from surefoot.sweep.sweep import Sweep

        changes = settings if preset is None else {**settings, "preset": preset}
        folder = run_dir or Path("runs") / f"sweep-{Path(config).stem}"
        base, own = read_settings(sweep_presets.read(config), changes)
        try:
            best = Sweep(base, own, folder).run()
        except KeyboardInterrupt:
            print("stopped; the same command continues the sweep")
            raise
        finals = "" if best.final is None else f" (with other seeds {best.final:.6g})"
        tell("best", f"trial {best.number}: {best.objective:.6g}{finals}")
        for key, value in best.values.items():
            tell("", f"{key} {value}")
        tell("settings", str(folder / BEST))
        tell_next(("surefoot", "train", "--config", folder / BEST), ("surefoot", "report", folder))
        return 0

    try:
        return parse(sweep, "sweep", rest)
    finally:
        if wants_help(rest):
            from surefoot.sweep.settings import SweepConfig

            print_settings(sweep=SweepConfig)
