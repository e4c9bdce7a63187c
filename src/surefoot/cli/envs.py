"""`surefoot envs`"""

from surefoot.cli.arguments import parse


def main(arguments: list[str]) -> int:
    """Parse, then list."""
    return parse(list_envs, "envs", arguments)


def list_envs(filter: str = "") -> int:
    """List the available environments; * marks those with a preset, n those with a native implementation.

    Args:
        filter: list only ids that contain this text
    """
    import gymnasium as gym

    from surefoot.envs.tasks.registration import register_envs
    from surefoot.presets import preset_names

    register_envs()
    presets, native = set(preset_names()), _native_ids()
    for name in sorted(gym.registry):
        if filter.lower() in name.lower():
            print(f"{'*' if name in presets else ' '}{'n' if name in native else ' '} {name}")
    return 0


def _native_ids() -> set[str]:
    """Ids with a native implementation; empty if the core is missing, because other engines still work."""
    from surefoot.core.errors import NativeError
    from surefoot.envs.native import native_ids

    try:
        return set(native_ids())
    except NativeError:
        return set()
