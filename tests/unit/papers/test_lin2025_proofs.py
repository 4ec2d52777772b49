"""Lemma A.1 and its martingales, and the joint law of the diffusion, on small problems."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

from privreg.theory.noisy_sgd.diffusion import RidgeRegression
from reproduction.papers.lin2025.experiments import (
    design,
    joint_law,
    martingales,
    proof_identities,
    proof_orders,
)

SMALL = {
    "dimension": 4,
    "features": 6,
    "points": 3,
    "rate": 0.6,
    "gradient_noise_std": 0.5,
    "ridge": 0.2,
}
PATHS = {
    "dimensions": [20, 40],
    "horizon": 2.0,
    "rate": 0.8,
    "gradient_noise_std": 0.5,
    "ridge": 0.1,
    "scaled_label_noise_std": 0.5,
    "lowest": 0.2,
    "highest": 1.8,
}
DESIGN = {
    "dimension": 100,
    "sample_size": 150,
    "step_size": 0.05,
    "ridge": 0.1,
    "scaled_label_noise_std": 0.1,
    "label_noise_clip": 3.0,
}


class Trial(NamedTuple):
    rng: np.random.Generator


class Trials(list[Any]):
    experiment = "lin2025/test"

    def __init__(self, count: int) -> None:
        super().__init__(Trial(np.random.Generator(np.random.SFC64(k))) for k in range(count))


def test_identities_hold_and_slips_show() -> None:
    found = proof_identities.theory(proof_identities.Parameters.model_validate(SMALL))
    for name in (
        "decomposition_corrected",
        "martingale_mean",
        "predictable_error",
        "quadratic_risk_error",
        "expansion_corrected",
    ):
        assert found[name].item() < 1e-12, name
    assert found.decomposition_printed.item() > 1e-4
    assert found.expansion_printed.item() > 1e-2
    assert found.exponent_threshold.item() == pytest.approx(1 / 24, abs=1e-10)
    assert found.noise_power_over_exponent.item() == pytest.approx(4.5, abs=1e-10)


def test_orders_of_the_proofs() -> None:
    found = proof_orders.theory(proof_orders.Parameters(dimensions=[25, 400], draws=20_000))
    assert found.expansion_growth.item() == pytest.approx(-0.5 + 2 / 25, abs=1e-10)
    assert found.sampled_noise_power.item() == pytest.approx(-1.5, abs=0.05)
    assert found.integrated_noise_power.item() == pytest.approx(0.0, abs=0.02)


def generators(*seeds: int) -> list[np.random.Generator]:
    return [np.random.Generator(np.random.SFC64(seed)) for seed in seeds]


def test_the_martingales_of_appendix_b_scale_with_the_ground_truths_squared_norm() -> None:
    """Without noise and from a start at zero the diffusion is linear in the ground truth."""
    parameters = martingales.Parameters.model_validate(PATHS).model_copy(
        update={"gradient_noise_std": 0.0}
    )
    sizes = []
    for norm in (1.0, 3.0):
        problem = RidgeRegression(
            np.linspace(0.2, 1.8, 40),
            np.full(40, norm / np.sqrt(40)),
            np.zeros(40),
            label_noise_std=0.0,
            ridge=0.1,
        )
        sizes.append(
            martingales._diffusion(problem, parameters, 80, generators(2))[1]["expansion"].item()
        )
    assert sizes[1] == pytest.approx(9.0 * sizes[0], rel=1e-9)


def test_the_terms_of_lemma_a1_add_up_to_the_increment_along_a_path() -> None:
    """Their sums are martingales and a small rest, so risk and its sum of terms agree in law."""
    parameters = martingales.Parameters.model_validate(PATHS)
    problem = parameters.problem(40)
    steps = parameters.steps(40)
    without, terms = martingales._noisy_sgd(problem, parameters, steps, generators(1))
    assert without.shape == (steps, 2, 1)
    # The same draws, so private noise alone tells the two paths apart.
    assert not np.array_equal(without[:, 0], without[:, 1])
    assert set(terms) == {"linear", "quadratic", "predictable", "private_linear"}
    assert all(value > 0 for value in terms.values())


def test_martingales_without_any_noise_have_nothing_to_add() -> None:
    """Held by records alone: no label noise and no error leave the path where it is."""
    parameters = martingales.Parameters.model_validate(
        PATHS | {"ridge": 0.0, "scaled_label_noise_std": 0.0}
    )
    problem = parameters.problem(20)
    still = type(problem)(
        problem.eigenvalues, problem.target, problem.target, label_noise_std=0.0, ridge=0.0
    )
    risk, terms = martingales._noisy_sgd(still, parameters, 30, generators(2))
    assert np.all(risk[:, 0] == 0)
    assert np.all(risk[:, 1] > 0)
    assert terms["linear"] == terms["quadratic"] == terms["predictable"] == 0


def test_the_diffusion_has_its_law_s_mean_risk() -> None:
    parameters = martingales.Parameters.model_validate(PATHS)
    problem, steps = parameters.problem(20), parameters.steps(20)
    ends = martingales._diffusion(problem, parameters, steps, generators(*range(100)))[0][-1, 1]
    expected = float(parameters.law(problem).risk(parameters.horizon))
    error = np.std(ends, ddof=1) / np.sqrt(len(ends))
    # Steps of 1/d hold the risk, which changes by a few percent in each.
    assert abs(np.mean(ends) - expected) < 4 * error + 0.01 * expected
    assert abs(np.mean(ends) - 1.5 * expected) > 4 * error + 0.01 * expected


def test_every_quantity_is_followed_at_every_dimension() -> None:
    parameters = martingales.Parameters.model_validate(PATHS)
    found = martingales.simulate(parameters, Trials(3))
    expected = {"quantity": len(martingales.QUANTITIES), "dimension": 2, "trial": 3}
    assert found.largest.sizes == expected
    assert np.all(found.largest > 0)
    summary = martingales.summarise(parameters, found.assign_coords(trial=np.arange(3)))
    assert summary.slope.attrs["ancillary_variables"] == "slope_standard_error"


def test_iterates_have_the_joint_law_and_not_that_of_independent_times() -> None:
    parameters = joint_law.Parameters.model_validate(
        {"design": DESIGN, "gradient_noise_std": 1.5, "steps": [50, 80, 150]}
    )
    found = joint_law.simulate(parameters, Trials(40))
    summary = joint_law.summarise(parameters, found.assign_coords(trial=np.arange(40)))
    distance, error = (
        float(summary[name]) for name in ("joint_distance", "joint_distance_standard_error")
    )
    assert abs(distance - 1.0025) < 4 * error
    assert error < 0.02
    ratio, spread = (
        summary[name].values for name in ("correlation_ratio", "correlation_ratio_standard_error")
    )
    assert np.all(np.abs(ratio - 1) < 4 * spread)
    # Independent iterates would not correlate at all.
    assert np.all(ratio > 4 * spread)


@pytest.mark.parametrize("steps", [[50], [0, 50], [80, 50], [50, 151]])
def test_times_must_increase_within_the_run(steps: list[int]) -> None:
    with pytest.raises(ValueError, match=r"steps|at least 2"):
        joint_law.Parameters.model_validate(
            {"design": DESIGN, "gradient_noise_std": 1.5, "steps": steps}
        )


def test_sub_gaussian_norm_of_a_normal() -> None:
    """E exp(w^2 / t^2) = (1 - 2 / t^2)^(-1/2) is 2 at t^2 = 8/3; clipping lowers it."""
    assert design._sub_gaussian_norm(8.0) == pytest.approx(np.sqrt(8 / 3), rel=1e-3)
    assert design._sub_gaussian_norm(3.0) < np.sqrt(8 / 3)
