"""Mechanisms run together: each gives what it gives alone on the same draws."""

from __future__ import annotations

import numpy as np
import pytest

from privreg.algorithms import one_pass_dpgd, one_pass_together
from privreg.algorithms.one_pass_mechanism import Mechanism
from privreg.models import LinearModel
from privreg.privacy.budget import Budget
from privreg.schedules import Harmonic, Polynomial, Schedule

ROWS, DIMENSION = 100, 5
NOISY = [Polynomial([0.5, 1.0, 2.0], 0.5), Harmonic([0.5, 4.0], 3.0), Polynomial(1.0, 2.0)]


def mechanism(schedule: Schedule, sample_size: int = ROWS) -> Mechanism:
    return Mechanism.from_schedule(
        schedule,
        sample_size=sample_size,
        dimension=DIMENSION,
        budget=Budget.zcdp(0.5),
        clip_constant=0.3,
    )


def noiseless(schedule: Schedule) -> Mechanism:
    noisy = mechanism(schedule)
    shapes = noisy.step_shape, np.zeros(ROWS), noisy.amplitude, noisy.clip_norm
    return Mechanism(*shapes, Budget(np.inf))


def rng() -> np.random.Generator:
    return np.random.default_rng(3)


def rows() -> tuple[np.ndarray, np.ndarray]:
    features = np.random.default_rng(4).standard_normal((ROWS, DIMENSION))
    return features, features @ np.arange(DIMENSION)


def paths(mechanisms: list[Mechanism], isotropic: bool) -> list[np.ndarray]:
    if isotropic:
        return one_pass_together.isotropic_risk_paths_together(
            mechanisms,
            rng(),
            dimension=DIMENSION,
            target_norm=1.0,
            label_noise_std=0.3,
            record=[0, 7, ROWS],
        )
    model = LinearModel.even_target(np.linspace(0.5, 1.5, DIMENSION), label_noise_std=0.3)
    return one_pass_together.risk_paths_together(mechanisms, model, rng(), record=[0, 7, ROWS])


@pytest.fixture(params=[one_pass_together.NARROW, 0], ids=["rows", "blocks"], autouse=True)
def route(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(one_pass_together, "NARROW", request.param)


def test_fits_are_those_of_each_mechanism_alone() -> None:
    mechanisms = [mechanism(schedule) for schedule in NOISY]
    together = one_pass_together.fit_together(mechanisms, *rows(), rng())
    assert [each.shape for each in together] == [(3, DIMENSION), (2, DIMENSION), (1, DIMENSION)]
    for own, found in zip(mechanisms, together, strict=True):
        alone = one_pass_dpgd.fit(own, *rows(), rng())
        np.testing.assert_allclose(found, alone, rtol=1e-10, atol=1e-12)
    # Neither shape is taken for another's, nor their noise.
    assert np.abs(together[0][1] - together[2][0]).max() > 1e-3


def test_settings_of_few_columns_are_those_of_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    mechanisms = [*map(mechanism, NOISY), mechanism(Polynomial(1.0, 0.0)), noiseless(NOISY[0])]
    found = []
    for narrow in (DIMENSION, DIMENSION - 1):
        monkeypatch.setattr(one_pass_together, "NARROW", narrow)
        found.append(np.vstack(one_pass_together.fit_together(mechanisms, *rows(), rng())))
    np.testing.assert_allclose(*found, rtol=1e-12, atol=1e-13)
    assert (found[0] != found[1]).any()


@pytest.mark.parametrize("isotropic", [False, True])
def test_risks_are_those_of_each_mechanism_alone(isotropic: bool) -> None:
    mechanisms = [mechanism(schedule) for schedule in NOISY]
    for own, found in zip(mechanisms, paths(mechanisms, isotropic), strict=True):
        np.testing.assert_array_equal(found, paths([own], isotropic)[0])


def test_a_mechanism_without_noise_takes_none_of_the_others() -> None:
    quiet = noiseless(NOISY[0])
    _, found = one_pass_together.fit_together([mechanism(NOISY[1]), quiet], *rows(), rng())
    alone = one_pass_dpgd.fit(quiet, *rows(), rng())
    np.testing.assert_allclose(found, alone, rtol=1e-10, atol=1e-12)


def test_output_perturbation_is_perturbed_beside_noisy_paths() -> None:
    constant = mechanism(Polynomial([0.5, 1.0], 0.0))
    assert not constant.noise_shape[:-1].any()
    assert constant.noise_shape[-1] > 0
    _, found = one_pass_together.fit_together([mechanism(NOISY[0]), constant], *rows(), rng())
    quiet = one_pass_dpgd.fit(noiseless(Polynomial([0.5, 1.0], 0.0)), *rows(), rng())
    added = (found - quiet) / (2 * constant.clip_norm * constant.amplitude)[:, None]
    directions = rng().standard_normal((ROWS, DIMENSION))
    expected = np.tile(constant.noise_shape[-1] * directions[-1], (2, 1))
    np.testing.assert_allclose(added, expected, rtol=1e-9)


@pytest.mark.parametrize("sizes", [[], [ROWS, ROWS + 1]])
def test_mechanisms_of_several_sizes_are_refused(sizes: list[int]) -> None:
    mechanisms = [mechanism(NOISY[0], sample_size=size) for size in sizes]
    with pytest.raises(ValueError, match="mechanisms must be at least one, of one sample size"):
        one_pass_together.fit_together(mechanisms, *rows(), rng())
