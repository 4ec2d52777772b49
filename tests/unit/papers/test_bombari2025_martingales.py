"""What is followed of the proof of Theorem 5, where its size is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from reproduction.papers.bombari2025.experiments import martingales

PARAMETERS: dict[str, Any] = {
    "dimensions": [10, 20],
    "aspect_ratio": 0.5,
    "budget": {"half_square": 2.0},
    "clip_constant": 0.3,
    "label_noise_std": 0.3,
    "initial_rate": 6.0,
    "exponent": 0.5,
}


def problem(dimension: int = 10, **changes: Any) -> martingales._Problem:
    parameters = martingales.Parameters.model_validate(PARAMETERS | changes)
    return martingales._Problem.of(parameters, dimension)


def followed(seed: int, **changes: Any) -> tuple[np.ndarray, dict[str, float]]:
    generators = [np.random.Generator(np.random.SFC64(seed))]
    forms, found = martingales._dpgd(problem(**changes), generators)
    return forms, {name: values.item() for name, values in found.items()}


def test_a_rate_below_its_cap_has_no_error_of_the_step() -> None:
    _, below = followed(1, initial_rate=0.1)
    assert below["step"] == pytest.approx(0.0, abs=1e-15)
    # With the rate at k / d half of the path has another rate.
    assert below["step_as_printed"] > 1e-4
    _, above = followed(1)
    assert above["step"] > 1e-4


def test_the_martingale_of_the_noise_is_as_large_as_the_noise() -> None:
    quiet, small = followed(2, budget={"half_square": 2e4})
    _, large = followed(2)
    assert small["noise"] < 0.05 * large["noise"]
    assert np.abs(quiet).max() < 10


def test_forms_of_both_begin_alike_and_are_those_of_the_resolvent() -> None:
    case = problem(dimension=40)
    generators = [np.random.Generator(np.random.SFC64(seed)) for seed in (3, 4)]
    start = case.hessians @ case.start(1)[0] ** 2 / 2
    for follow in (martingales._dpgd, martingales._diffusion):
        path, _ = follow(case, generators)
        assert path.shape == (case.samples - 1, 2, len(martingales.ANGLES))
        np.testing.assert_allclose(path[0], np.array([start, start]), rtol=0.5)
    # (C.2): on the circle of twice the largest eigenvalue a resolvent is at most its inverse.
    assert np.abs(case.hessians).max() <= 1 / case.eigenvalues.max() * (1 + 1e-12)
