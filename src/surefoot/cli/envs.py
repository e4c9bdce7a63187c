"""`surefoot envs`"""

from surefoot.cli.arguments import parse


def main(arguments: list[str]) -> int:
    """Parse, then list."""
    return parse(list_envs, "envs", arguments)


def list_envs(filter: str = "") -> int:
    """List the environments that can be trained; a * marks those with a preset.

    Args:
        filter: only ids that contain this text
    """
    import gymnasium as gym

    from surefoot.presets import preset_names

    presets = set(preset_names())
    for name in sorted(gym.registry):
        if filter.lower() in name.lower():
            print(f"{'*' if name in presets else ' '} {name}")
    return 0
