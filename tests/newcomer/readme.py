"""The commands in README and docs/features.md: each is walked, or skipped for a reason that is given here."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SKIPPED = {
    "make train": "sets up .venv of the clone; the walk installs without make, as README says next",
    "make test": "takes minutes, and this walk is tried beside it",
    "surefoot watch runs/mine": "needs a display; the walk records videos, and tests/watching opens windows",
    "surefoot train Ant-v5 --rollout.engine ray --rollout.num_envs 64": (
        "needs the extra ray and several machines; run by make cluster"
    ),
    "surefoot bench rollout Ant-v5 --rollout.num_envs 64": "takes minutes and needs an idle machine",
}
"""Commands of these pages that are not walked, and why."""


def readme_commands() -> list[str]:
    """The lines of the plain code blocks of both pages, each once and without its comment."""
    text = "".join((ROOT / page).read_text(encoding="utf-8") for page in ("README.md", "docs/features.md"))
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
    lines = [line.partition(" #")[0].strip() for kind, block in blocks if not kind for line in block.splitlines()]
    return list(dict.fromkeys(line for line in lines if line and not line.startswith("#")))
