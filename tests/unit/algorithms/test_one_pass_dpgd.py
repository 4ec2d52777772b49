"""One-pass DP-GD: its scalar step against vectors, its draws against NumPy's, and its ranges."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from relations import generator

from privreg.algorithms import one_pass_dpgd
from privreg.algorithms.one_pass_dpgd import Mechanism, _chi_square, _spread, fit
from privreg.models import LinearModel
from privreg.privacy.budget import Budget
from privreg.schedules import Harmonic, Polynomial, Schedule

STEPS = 25


@pytest.mark.parametrize("dimension", [3, 4, 40])
@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_the_isotropic_step_is_that_of_vectors(dimension: int, noise: float) -> None:
    """Coordinates along the error, across it in the sample's plane, and in the rest."""
    noise_shape = np.full(STEPS, noise)
    noise_shape[3] = 0.0
    mechanism = Mechanism(
        np.linspace(0.5, 0.1, STEPS), noise_shape, [1.0, 3.0], [0.4, 2.0], Budget(np.inf)
    )
    found = one_pass_dpgd.isotropic_risk_path(
        mechanism,
        generator(1),
        dimension=dimension,
        target_norm=1.5,
        label_noise_std=0.3,
        record=np.arange(STEPS + 1),
    )
    for setting, (amplitude, clip_norm) in enumerate([(1.0, 0.4), (3.0, 2.0)]):
        rng, length = generator(1), 1.5
        for step in range(STEPS):
            assert found[setting, step] == pytest.approx(length**2 / 2, rel=1e-11)
            along, squared_across = rng.standard_normal(), rng.chisquare(dimension - 1)
            sample = np.array([along, np.sqrt(squared_across), 0.0])
            error = np.array([length, 0.0, 0.0])
            gradient = sample * (sample @ error - 0.3 * rng.standard_normal())
            gradient *= min(1.0, clip_norm / np.linalg.norm(gradient))
            rate = min(amplitude * mechanism.step_shape[step], 2 / (sample @ sample))
            moved = error - rate * gradient
            if noise_shape[step] > 0:
                plane, rest = rng.standard_normal(2), rng.chisquare(dimension - 2)
                direction = np.append(plane, np.sqrt(rest))
                moved += 2 * clip_norm * amplitude * noise_shape[step] * direction
            length = np.linalg.norm(moved)
        assert found[setting, STEPS] == pytest.approx(length**2 / 2, rel=1e-11)


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 40])
def test_chi_square_draws_are_those_of_numpy(freedom: int) -> None:
    ours, theirs = generator(2), generator(2)
    draws = [_chi_square(ours, freedom, _spread(freedom)) for _ in range(1000)]
    expected = [theirs.chisquare(freedom) for _ in range(1000)]
    assert_allclose(draws, expected, rtol=1e-12)


@pytest.mark.parametrize("budget_free_noise", [0.0, 0.2])
def test_rows_of_zeros_move_nothing(budget_free_noise: float) -> None:
    """A row of zeros leaves what rows before and after it do."""
    mechanism = Mechanism(
        np.full(3, 0.2), np.full(3, budget_free_noise), [1.0], [0.5], Budget(np.inf)
    )
    features = np.array([[1.0, 2.0], [0.0, 0.0], [0.5, -1.0]])
    labels = np.array([1.0, 7.0, -1.0])
    found = one_pass_dpgd.fit(mechanism, features, labels, generator(3))[0]
    rng = generator(3)
    noise = rng.standard_normal((3, 2)) if budget_free_noise else np.zeros((3, 2))
    theta = np.zeros(2)
    for x, y, kick in zip(features, labels, noise, strict=True):
        gradient = x * (x @ theta - y)
        length = np.linalg.norm(gradient)
        if length > 0:
            theta = theta - 0.2 * gradient * min(1.0, 0.5 / length)
        theta = theta + 2 * 0.5 * budget_free_noise * kick
    # Steps of a tenth round to 1e-17 each, whichever way the processor fuses them.
    assert_allclose(found, theta, rtol=1e-12, atol=1e-16)


def test_a_row_alone_moves_by_its_gradient_and_its_noise(settings: int) -> None:
    mechanism = Mechanism([0.2], [0.3], np.ones(settings), np.full(settings, 0.5), Budget(np.inf))
    found = one_pass_dpgd.fit(mechanism, np.array([[3.0, 4.0]]), np.array([1.0]), generator(4))
    # The step is the cap 2/25, the gradient 5 long, the noise 2 · 0.5 · 0.3 along one draw.
    expected = 2 / 25 * 0.5 * np.array([0.6, 0.8]) + 0.3 * generator(4).standard_normal(2)
    assert_allclose(found, np.tile(expected, (settings, 1)), rtol=1e-12)


def test_long_rows_alone_leave_the_noise_as_it_is(settings: int) -> None:
    """As they are, the product of such a row with earlier noise overflows in both directions."""
    rows = np.tile([1.7e308, -1.7e308], (40, 1))
    mechanism = Mechanism(
        np.full(40, 0.2),
        np.full(40, 3.0),
        np.ones(settings),
        np.full(settings, 0.5),
        Budget(np.inf),
    )
    found = one_pass_dpgd.fit(mechanism, rows, np.zeros(40), generator(5))
    noise = 3.0 * generator(5).standard_normal((40, 2)).sum(axis=0)
    assert_allclose(found, np.tile(noise, (settings, 1)), rtol=1e-12)


@pytest.mark.parametrize("dimension", [1, 4, 100])
def test_the_clip_norm_is_the_constant_in_units_of_the_residual(dimension: int) -> None:
    """Only replaced records are covered: one more would move the later ones."""
    shape, schedule = {"sample_size": 10, "dimension": dimension}, Polynomial(1.0, 0.5)
    options = {**shape, "clip_constant": [0.3, 2.0]}
    mechanism = Mechanism.from_schedule(schedule, budget=Budget.zcdp(0.5), **options)
    assert_allclose(mechanism.clip_norm, np.sqrt(dimension) * np.array([0.3, 2.0]))
    for relation in ("add-remove", "zero-out"):
        budget = Budget.zcdp(0.5, neighbours=relation)
        with pytest.raises(ValueError, match="budget must be for replace-one neighbours"):
            Mechanism.from_schedule(schedule, budget=budget, **options)


def test_the_largest_steps_stay_finite() -> None:
    labels = np.full(3, -1e300)
    for row in (1e300, 1e-300):
        largest = Mechanism([1e30] * 3, [1e30] * 3, [1e12] * 2, [1e30] * 2, Budget(np.inf))
        rng = np.random.Generator(np.random.SFC64(1))
        assert np.all(np.isfinite(fit(largest, np.full((3, 20), row), labels, rng)))
    smallest = Mechanism([1.0], [0.0], [1e-12], [1e-12], Budget(np.inf))
    assert smallest.amplitude[0] == smallest.clip_norm[0] == 1e-12


def test_recorded_steps_increase() -> None:
    mechanism = Mechanism(np.full(5, 0.1), np.zeros(5), [1.0], [1.0], Budget(np.inf))
    options = {"dimension": 3, "target_norm": 0.5, "label_noise_std": 0.1}

    def path(record: object) -> np.ndarray:
        return one_pass_dpgd.isotropic_risk_path(
            mechanism, np.random.default_rng(1), record=record, **options
        )

    every = path(np.arange(6))
    assert every[0, 0] == pytest.approx(0.125)
    assert_array_equal(path([2, 5]), every[:, [2, 5]])
    for wrong in ([2, 1], [2, 2], [[1], [2]], [[2], [1]]):
        with pytest.raises(ValueError, match="record"):
            path(wrong)


ROWS, DIMENSION = 100, 5
NOISY = [Polynomial([0.5, 1.0, 2.0], 0.5), Harmonic([0.5, 4.0], 3.0), Polynomial(1.0, 2.0)]


def mechanism(schedule: Schedule, sample_size: int = ROWS) -> Mechanism:
    options = {"dimension": DIMENSION, "budget": Budget.zcdp(0.5), "clip_constant": 0.3}
    return Mechanism.from_schedule(schedule, sample_size=sample_size, **options)


def noiseless(schedule: Schedule) -> Mechanism:
    noisy = mechanism(schedule)
    shapes = noisy.step_shape, np.zeros(ROWS), noisy.amplitude, noisy.clip_norm
    return Mechanism(*shapes, Budget(np.inf))


def fits(*mechanisms: Mechanism) -> list[np.ndarray]:
    features = np.random.default_rng(4).standard_normal((mechanisms[0].sample_size, DIMENSION))
    labels = features @ np.arange(DIMENSION)
    rng = np.random.default_rng(3)
    return one_pass_dpgd.fit_together(list(mechanisms), features, labels, rng)


@pytest.mark.parametrize("narrow", [one_pass_dpgd.NARROW, 0], ids=["rows", "blocks"])
def test_mechanisms_together_give_what_each_gives_alone(monkeypatch, narrow) -> None:
    monkeypatch.setattr(one_pass_dpgd, "NARROW", narrow)
    mechanisms = [*map(mechanism, NOISY), noiseless(NOISY[0])]
    together = fits(*mechanisms)
    assert [len(each) for each in together] == [3, 2, 1, 3]
    for own, found in zip(mechanisms, together, strict=True):
        assert_allclose(found, fits(own)[0], rtol=1e-10, atol=1e-12)
    # Neither shape is taken for another's, nor their noise.
    assert np.abs(together[0][1] - together[2][0]).max() > 1e-3
    # Output perturbation is perturbed beside noisy paths.
    constant = mechanism(Polynomial([0.5, 1.0], 0.0))
    assert not constant.noise_shape[:-1].any()
    (quiet,) = fits(noiseless(Polynomial([0.5, 1.0], 0.0)))
    added = (fits(mechanisms[0], constant)[1] - quiet) / (
        2 * constant.clip_norm * constant.amplitude
    )[:, None]
    direction = np.random.default_rng(3).standard_normal((ROWS, DIMENSION))[-1]
    assert_allclose(added, np.tile(constant.noise_shape[-1] * direction, (2, 1)), rtol=1e-9)


@pytest.mark.parametrize("isotropic", [False, True])
def test_risks_together_are_those_of_each_mechanism_alone(isotropic: bool) -> None:
    law = {"dimension": DIMENSION, "target_norm": 1.0, "label_noise_std": 0.3}
    model = LinearModel.even_target(np.linspace(0.5, 1.5, DIMENSION), label_noise_std=0.3)

    def paths(*mechanisms: Mechanism) -> list[np.ndarray]:
        rng, record = np.random.default_rng(3), [0, 7, ROWS]
        if isotropic:
            run = one_pass_dpgd.isotropic_risk_paths_together
            return run(list(mechanisms), rng, record=record, **law)
        return one_pass_dpgd.risk_paths_together(list(mechanisms), model, rng, record=record)

    mechanisms = [mechanism(schedule) for schedule in NOISY]
    for own, found in zip(mechanisms, paths(*mechanisms), strict=True):
        assert_array_equal(found, paths(own)[0])


def test_mechanisms_of_several_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match="mechanisms must be one or more, of equal sample size"):
        fits(mechanism(NOISY[0]), mechanism(NOISY[0], sample_size=ROWS + 1))
