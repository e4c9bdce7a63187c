"""The golden cases, and the decorator that hands them to tests; test_coverage.py notices what no test asks for."""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

CASES: dict[str, Any] = json.loads((Path(__file__).parent / "golden_cases.json").read_text())["cases"]
USED: set[str] = set()


@dataclass(frozen=True)
class Case:
    name: str
    given: Any
    expect: dict[str, Any]
    known_wrong: dict[str, Any]
    atol: float

    def agrees(self, actual: Any, key: str) -> None:
        """`actual` is what the case expects under `key`, within the case's tolerance."""
        np.testing.assert_allclose(
            _array(actual), self.expect[key], rtol=0, atol=self.atol, err_msg=f"{self.name}: {key}"
        )

    def differs(self, actual: Any, key: str) -> None:
        """`actual` is not what the well-known bug `key` produces."""
        wrong = np.asarray(self.known_wrong[key], dtype=np.float64)
        actual = _array(actual)
        assert actual.shape == wrong.shape, "compare like with like"
        assert not np.allclose(actual, wrong, rtol=0, atol=10 * self.atol), f"{self.name}: the bug '{key}'"


def golden(*names: str) -> pytest.MarkDecorator:
    """Run the test once a case, as the argument `case`, with the case's name in its id."""
    USED.update(names)
    cases = [Case(name, *(CASES[name][part] for part in ("given", "expect", "known_wrong", "atol"))) for name in names]
    return pytest.mark.parametrize("case", cases, ids=names)


def float64(values: Any) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def column(values: Any) -> torch.Tensor:
    """T steps of one row, `[T, 1]`."""
    return float64(values).unsqueeze(1)


def _array(values: Any) -> np.ndarray:
    if isinstance(values, torch.Tensor):
        values = values.detach().numpy()
    array = np.asarray(values, dtype=np.float64)
    assert not np.isnan(array).any(), f"NaN in {array}"
    return array


def is_missing(value: torch.Tensor) -> bool:
    return math.isnan(float(value))
