"""The diffusion follows the deterministic equivalent; with the printed drift it does not."""

from __future__ import annotations

import numpy as np
import pytest

from privreg import spectra
from privreg.models import LinearModel
from privreg.schedules import Polynomial
from privreg.theory.one_pass_dpgd import deterministic_equivalent, volterra

DIMENSION, GAMMA, PATHS = 200, 0.1, 40
TIMES = np.array([0.25, 0.5, 1.0])
PROBLEM = {"zcdp_root": 1.0, "clip_constant": 1.0}


def paths(eigenvalues, form, *, paths=PATHS, **problem):
    rng = np.random.Generator(np.random.SFC64(7))
    model = LinearModel.even_target(eigenvalues, label_noise_std=0.3)
    return np.array(
        [
            volterra.risk_path(
                model,
                Polynomial(3.0, 0.5),
                rng,
                sample_size=round(DIMENSION / GAMMA),
                times=TIMES,
                form=form,
                **(PROBLEM | problem),
            )
            for _ in range(paths)
        ]
    )


def equivalent(eigenvalues, label_noise_std=0.3, **problem):
    return deterministic_equivalent.solve(
        spectra.explicit(eigenvalues),
        Polynomial(3.0, 0.5),
        aspect_ratio=GAMMA,
        label_noise_std=label_noise_std,
        times=TIMES,
        **(PROBLEM | problem),
    ).risk


@pytest.mark.parametrize("name", ["isotropic", "uniform"])
def test_corrected_drift_follows_the_deterministic_equivalent(name):
    eigenvalues = (
        np.ones(DIMENSION) if name == "isotropic" else spectra.uniform_midpoints(DIMENSION)
    )
    found = paths(eigenvalues, "corrected")
    error = found.std(axis=0, ddof=1) / np.sqrt(PATHS)
    # The clipping factors' curvature leaves a bias of order 1 / d beside the Monte-Carlo error.
    assert np.all(np.abs(found.mean(axis=0) - equivalent(eigenvalues)) < 4 * error + 1 / DIMENSION)


def test_other_scales_are_refused():
    eigenvalues = np.ones(DIMENSION)
    found = paths(eigenvalues, "corrected")
    error = found.std(axis=0, ddof=1) / np.sqrt(PATHS)
    for factor in (2 / 3, 3 / 2):
        wrong = equivalent(eigenvalues, zcdp_root=PROBLEM["zcdp_root"] * factor)
        assert np.any(np.abs(found.mean(axis=0) - wrong) > 4 * error + 1 / DIMENSION)
        wrong = equivalent(eigenvalues, clip_constant=PROBLEM["clip_constant"] * factor)
        assert np.any(np.abs(found.mean(axis=0) - wrong) > 4 * error + 1 / DIMENSION)


def test_printed_drift_leaves_the_deterministic_equivalent():
    eigenvalues = np.ones(DIMENSION)
    found = paths(eigenvalues, "printed", paths=10)
    assert np.all(found.mean(axis=0) < 0.6 * equivalent(eigenvalues))


def test_one_step_moments():
    # One Euler step from the start, against the drift and the noise of the equation.
    dimension, sample_size = 4, 50
    eigenvalues = np.array([0.5, 1.0, 1.0, 1.5])
    model = LinearModel.even_target(eigenvalues, label_noise_std=0.3)
    rng = np.random.Generator(np.random.SFC64(3))
    found = np.array(
        [
            volterra.risk_path(
                model,
                Polynomial(1.0, 1.0),
                rng,
                sample_size=sample_size,
                zcdp_root=0.5,
                clip_constant=0.8,
                times=[1.0],
                steps=1,
            )[0]
            for _ in range(20000)
        ]
    )
    risk = model.excess_risk(np.zeros(dimension))
    gamma = dimension / sample_size
    from privreg.theory.one_pass_dpgd.deterministic_equivalent import (
        descent_factor,
        variance_factor,
    )

    descent = descent_factor(risk, clip_constant=0.8, label_noise_std=0.3)
    kick = (
        2
        * variance_factor(risk, clip_constant=0.8, label_noise_std=0.3)
        * (risk + 0.045)
        / sample_size
    )
    private = 4 * dimension * 0.8**2 / (sample_size * 0.5) ** 2
    centre = (model.target * (1 - descent * eigenvalues)) ** 2 @ eigenvalues / 2
    expected = centre + np.sum(eigenvalues * (kick * eigenvalues + private)) / 2
    assert 2 / gamma > 1.0
    assert abs(found.mean() - expected) < 4 * found.std() / np.sqrt(len(found))
