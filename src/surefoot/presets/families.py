"""Families of envs that share presets: an Atari game has many ids, and most games have no preset of their own."""

import re

ATARI = "Atari"
"""The preset of all games without one of their own."""
_MUJOCO = (
    "Ant|HalfCheetah|Hopper|Humanoid|HumanoidStandup|InvertedDoublePendulum|InvertedPendulum|Pusher|Reacher|Swimmer"
    "|Walker2d"
)
_GAME = re.compile(
    rf"(?:ale_py:)?ALE/(?P<ale>\w+)-v5|(?:ale_py:)?(?P<old>\w+)NoFrameskip-v[04]|envpool:(?!(?:{_MUJOCO})-)(?P<pool>\w+)-v5"
)
"""The ids of a game: ale-py's new and old ones, and EnvPool's, whose other tasks with this version are MuJoCo's."""


def family_presets(env_id: str) -> tuple[str, ...]:
    """Presets that an env without one of its own name may have, the closest one first."""
    found = _GAME.fullmatch(env_id)
    return (f"ALE/{found['ale'] or found['old'] or found['pool']}-v5", ATARI) if found else ()
