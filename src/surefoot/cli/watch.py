"""`surefoot watch RUN|MODEL ...`"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from surefoot.cli.arguments import Switch
from surefoot.cli.trained import load_agent, or_in_python
from surefoot.errors import ConfigError
from surefoot.output.terminal import Terminal

if TYPE_CHECKING:
    from surefoot.watching.recording import Recording, Shown


def run(
    model: str,
    /,
    video: Path | None = None,
    episodes: int = 1,
    seed: int = 0,
    sampled: Switch = False,
    max_steps: int = 10_000,
    env: str | None = None,
    trust: Switch = False,
) -> int:
    """Watch a run (its best policy, or the newest if there is none) or a model file play complete episodes.

    Without --video a window opens, which needs a display. `surefoot evaluate` with the same seed plays the same
    episodes.

    Args:
        model: a run directory, a .safetensors file, or zoo:NAME ('surefoot zoo')
        video: write a video instead of opening a window: a file that ends in .mp4 or .gif
        episodes: number of episodes
        seed: seed of the episodes; the same seed gives the same episodes
        sampled: sample actions instead of using the deterministic ones
        max_steps: steps after which an episode is cut off
        env: a Gymnasium id to use instead of the one the policy was trained on
        trust: import modules and load libraries that the model names
    """
    if episodes < 1:
        raise ConfigError(f"--episodes: must be at least 1 (got {episodes})")
    if max_steps < 1:
        raise ConfigError(f"--max-steps: must be at least 1 (got {max_steps})")
    _check_target(video)
    call = f"watch({episodes})" if video is None else f"record({str(video)!r}, {episodes})"
    options: dict[str, Any] = {"seed": seed, "deterministic": not sampled, "max_steps": max_steps}
    with or_in_python(model, call, env):
        agent, path = load_agent(model, env, trust)
        with watch_progress(episodes, agent.config.env.id) as tell:
            options["tell"] = tell
            played = agent.watch(episodes, **options) if video is None else agent.record(video, episodes, **options)
    print("\n".join([f"model     {path}", *_lines(played)]))
    return 0


def _check_target(video: Path | None) -> None:
    """Refuse a window without a display and a file that cannot be written before torch is imported."""
    from surefoot.watching.target import check_display, check_video_file

    if video is None:
        check_display()
    else:
        check_video_file(video)


def _lines(played: "Shown | Recording") -> list[str]:
    from surefoot.watching.recording import Recording

    lines = [
        f"episode {number:<3d} return {total:.2f}, {length} steps"
        for number, (total, length) in enumerate(zip(played.returns, played.lengths, strict=True), 1)
    ]
    if isinstance(played, Recording):
        seconds, size = played.num_frames / played.fps, played.path.stat().st_size / 1e3
        lines.append(f"video     {played.path}  ({seconds:.1f} s, {size:,.0f} kB)")
    return lines


if TYPE_CHECKING:
    from surefoot.watching.playing import Moment
    from surefoot.watching.recording import Tell


@contextmanager
def watch_progress(episodes: int, env_id: str) -> "Iterator[Tell]":
    """Shows episode, step and return on a terminal; elsewhere nothing."""
    columns = (
        SpinnerColumn(),
        TextColumn(env_id, markup=False),
        BarColumn(bar_width=20),
        TextColumn("episode {task.fields[episode]}/{task.total}"),
        TextColumn("step {task.fields[step]:,}"),
        TextColumn("return {task.fields[total_reward]}"),
        TimeElapsedColumn(),
    )
    console = Terminal(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task("", total=episodes, episode=1, step=0, total_reward="0")

        def tell(moment: "Moment") -> None:
            from surefoot.watching.recording import shown_return

            progress.update(
                bar,
                completed=moment.episode + moment.is_last,
                episode=moment.episode + 1,
                step=moment.step,
                total_reward=shown_return(moment.total_reward),
            )

        yield tell
