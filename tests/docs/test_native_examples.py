"""The C++ that docs/extend quotes: compiled, verified against its Python twin, trained."""

import shutil
from pathlib import Path

from surefoot.native.building import build
from surefoot.verification import verify
from tests.cli.runs import TINY, records, train

EXAMPLES = Path(__file__).parents[2] / "docs" / "extend" / "examples"


def test_the_arm_is_built_verified_and_trained(tmp_path: Path) -> None:
    for name in ("arm.cpp", "arm.py", "arm.xml"):
        shutil.copy(EXAMPLES / name, tmp_path)
    library = build(tmp_path / "arm.cpp")
    report = verify(str(library))
    assert report.ok, report.differing
    train(str(library), tmp_path / "run", *TINY, "--rollout.num_steps", 64, "--steps", 256)
    seen = records(tmp_path / "run")
    assert len(seen) == 2
    assert "env/miss" in seen[-1]
