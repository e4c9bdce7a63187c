"""`surefoot envs`"""

from pathlib import Path

from surefoot.storage.files import readable_text


def run(library: Path | None = None, /, filter: str = "") -> int:
    """List the available environments; * marks those with a preset, n those with a native implementation.

    Libraries that were built in the current folder are listed first (surefoot native build).

    Args:
        library: list only the environments of a library, ./my_env.so
        filter: list only ids that contain this text
    """
    import gymnasium as gym

    from surefoot.envs.adapters.atari import register_installed_games
    from surefoot.presets import preset_of

    if library is not None:
        print("\n".join(_library_ids(library)))
        return 0
    for line in _built_here():
        if filter.lower() in line.lower():
            print(line)
    register_installed_games()
    native, teams = _native_ids()
    for name in sorted([*gym.registry, *teams]):
        if filter.lower() in name.lower():
            print(f"{'*' if preset_of(name) else ' '}{'n' if name in native else ' '} {name}")
    return 0


def _library_ids(path: Path) -> list[str]:
    from surefoot.envs.library import library_envs

    shown = path if path.is_absolute() else f"./{path}"
    return [f" n {shown}:{name}" for name in library_envs(path)]


def _built_here() -> list[str]:
    """Of libraries with environments; other files with such names are left alone."""
    from surefoot.errors import NativeError

    lines = []
    for path in sorted(Path().glob("*.so")):
        if "surefoot_library" not in readable_text(path):
            continue
        try:
            lines += _library_ids(path)
        except NativeError as error:
            lines.append(f"   ./{path} ({error})")
    return lines


def _native_ids() -> tuple[set[str], tuple[str, ...]]:
    """Ids with a native implementation, and those among them with several agents, which Gymnasium does not know.

    Empty if the core is missing, because other engines still work.
    """
    from surefoot.envs.native import native_ids, native_teams
    from surefoot.errors import InstructionsError, NativeError

    try:
        return {*native_ids(), *native_teams()}, native_teams()
    except InstructionsError:
        raise
    except NativeError:
        return set(), ()
