"""Closed forms of the market against published and golden numbers."""

import math

import pytest

from surefoot.envs.tasks.market_answers import (
    Component,
    best_exposure,
    limited_exposure,
    mixture_tail,
    normal_tail_factor,
    student_t_quantile,
    student_t_tail_factor,
)


def test_normal_tails():
    assert -normal_tail_factor(0.05) == pytest.approx(-2.0627128075074266, abs=1e-9), "golden case cvar_normal"
    assert normal_tail_factor(0.1) == pytest.approx(1.7550, abs=5e-5)


@pytest.mark.parametrize(
    ("alpha", "degrees", "quantile"), [(0.05, 5, -2.015048), (0.1, 5, -1.475884), (0.1, 3, -1.637744)]
)
def test_student_t_quantiles_of_printed_tables(alpha, degrees, quantile):
    assert student_t_quantile(alpha, degrees) == pytest.approx(quantile, abs=1e-6)


def test_student_t_tails():
    assert student_t_tail_factor(0.05, 5) == pytest.approx(2.2387, abs=5e-5)
    assert student_t_tail_factor(0.1, 5) == pytest.approx(1.7833, abs=5e-5)
    assert student_t_tail_factor(0.05, 1e6) == pytest.approx(normal_tail_factor(0.05), abs=1e-5)


def test_the_tail_of_jumps():
    mixture = [Component(0.98, 0.0005, 0.01), Component(0.02, 0.0005 - 0.06, math.hypot(0.01, 0.03))]
    assert mixture_tail(mixture, 0.05) == pytest.approx((-0.017947, -0.037625), abs=5e-7)
    alone = mixture_tail([Component(1.0, 0.1, 2.0)], 0.05)
    assert alone.cvar == pytest.approx(0.1 - 2.0 * normal_tail_factor(0.05), abs=1e-9)


@pytest.mark.parametrize(("weight", "exposure"), [(0.0, 1.0), (0.25, 0.554), (0.5, 0.108), (0.9, 0.0)])
def test_the_investor_s_exposure(weight, exposure):
    factor = student_t_tail_factor(0.1, 5)
    assert best_exposure(0.5, 0.5, 0.5, factor, weight) == pytest.approx(exposure, abs=5e-4)


def test_the_limited_investor():
    factor = student_t_tail_factor(0.1, 5)
    limited = limited_exposure(0.5, 0.5, 0.5, factor, limit=0.4)
    assert limited == pytest.approx((0.7045, 0.1986), abs=5e-5)
    w = limited.exposure
    assert w * (0.5 * factor - 0.5) + 0.25 * w**2 == pytest.approx(0.4), "the limit binds"
    assert limited_exposure(0.5, 0.5, 0.5, factor, limit=4.0) == (1.0, 0.0), "a limit that does not bind"
