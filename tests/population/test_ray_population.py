"""A population on Ray is that of this machine, bit for bit."""

from pathlib import Path

import pytest

from surefoot.training.checkpoint import read_checkpoint
from tests.population.populations import small_plan, train
from tests.training.states import assert_same

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.xdist_group("ray"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


def test_ray_gives_the_population_of_this_machine(tmp_path: Path) -> None:
    for backend in ("inline", "local", "ray"):
        train(tmp_path / backend, small_plan(backend=backend))
    logs = {backend: (tmp_path / backend / "population.jsonl").read_bytes() for backend in ("inline", "local", "ray")}
    assert logs["inline"].count(b"\n") == 9
    assert logs["local"] == logs["inline"]
    assert logs["ray"] == logs["inline"]
    assert_same(*(read_checkpoint(tmp_path / name / "best.safetensors") for name in ("local", "ray")))
