"""The commands in README: each is walked, or skipped for a reason that is given here."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SKIPPED = {
    "make train": "sets up .venv of the clone; the walk installs without make, as README says next",
    "make test": "takes minutes, and this walk is tried beside it",
    "surefoot watch runs/mine": "needs a display; the walk records videos, and tests/watching opens windows",
    "surefoot train Ant-v5 --rollout.engine ray --rollout.num_envs 64 --rollout.num_steps 64 --ppo.batch_size 1024": (
        "needs the extra ray and several machines; run by make cluster"
    ),
    "surefoot bench rollout Ant-v5 --rollout.num_envs 64": "takes minutes and needs an idle machine",
}
"""Commands of README that are not walked, and why."""


def readme_commands() -> list[str]:
    """The lines of README's plain code blocks, without comments."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
    lines = [line.partition(" #")[0].strip() for block in blocks for line in block.splitlines()]
    return [line for line in lines if line and not line.startswith("#")]
