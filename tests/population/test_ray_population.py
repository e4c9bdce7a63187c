"""A population on Ray is that of this machine, bit for bit."""

from pathlib import Path

import pytest

from tests.population.populations import small_plan, train

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
    weights = [(tmp_path / backend / "best.safetensors").read_bytes() for backend in ("local", "ray")]
    assert weights[0] == weights[1]
