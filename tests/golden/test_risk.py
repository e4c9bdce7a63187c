"""CVaR against golden values."""

from statistics import NormalDist

import pytest

from surefoot.statistics.risk import cvar

from .cases import golden


@golden("cvar_quantiles")
def test_cvar_of_quantiles(case):
    for key in case.expect:
        case.agrees(cvar(case.given["quantiles"], float(key.removeprefix("alpha_"))), key)
    for wrong in ("alpha_0_375_floor_no_fraction", "alpha_0_375_ceil"):
        case.differs(cvar(case.given["quantiles"], 0.375), wrong)
    case.differs(cvar([1.0, -10.0, 5.0, -2.0], 0.25), "unsorted_input_alpha_0_25_from_1_m10_5_m2")


@golden("cvar_normal")
def test_cvar_of_a_normal_distribution(case):
    errors = []
    for key in ("N_21", "N_51", "N_101", "N_1001"):
        count = int(key.removeprefix("N_"))
        quantiles = [NormalDist().inv_cdf((place + 0.5) / count) for place in range(count)]
        found = cvar(quantiles, case.given["alpha"])
        case.agrees(found, key)
        errors.append(abs(float(found) - case.expect["exact"]))
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] == pytest.approx(0, abs=2e-3)
