"""The parts of a prediction: rows, clipped residuals, nodes, finite samples."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import erf, erfc, gammainc
from scipy.stats import norm

from privreg.methods.adassp import _resolvent
from privreg.methods.clipping import (
    DEGREES,
    clipped_rows,
    clipped_slopes,
    finite,
    noise_moments,
    sample_nodes,
    sampling_inflation,
    squared_scales,
)
from privreg.methods.problem import FEATURE_LAWS, LABEL_NOISE_LAWS, ErrorMoments, Problem, rows_of


def problem(law="gaussian", values=(0.1, 0.2, 0.2, 0.5)):
    return Problem(1000, values, signal=1.0, label_noise_std=1.0, feature_law=law)


@pytest.mark.parametrize("law", FEATURE_LAWS)
def test_rows_have_the_stated_second_moments(law):
    rows = rows_of(problem(law))
    assert rows.weights.sum() == pytest.approx(1)
    assert rows.multiplicities.tolist() == [1, 2, 1]
    np.testing.assert_allclose(rows.per_coordinate(np.ones(rows.norms.size)), [0.1, 0.2, 0.5])
    np.testing.assert_allclose(rows.weights @ rows.norms**2, 1.0)
    assert rows.total(rows.eigenvalues) == pytest.approx(1.0)


def test_an_interval_is_that_of_the_root_mean_square_error_and_a_large_risk_diverges():
    moments = ErrorMoments(np.array([[0.1], [1e9]]), np.array([[0.3], [0.0]]))
    stated = problem(values=np.ones(4))
    found, diverged = moments.predictions(stated, rows_of(stated))
    assert found.interval_length == pytest.approx(2 * norm.isf(0.025) * np.sqrt(0.4))
    assert (found.holds, diverged.excess_risk) == (True, np.inf)


@pytest.mark.parametrize("bias", [0.0, 0.5])
def test_the_spread_of_risks_is_that_of_squares_of_few_gaussian_errors(rng, bias):
    stated = problem(values=[1.0, 0.5])
    rows, variance = rows_of(stated), np.array([[0.3, 0.2]])
    (found,) = ErrorMoments(np.array([[bias**2, 0.0]]), variance).predictions(stated, rows)
    errors = [bias, 0.0] + np.sqrt(variance) * rng.standard_normal((20_000, 2))
    risks = errors**2 @ rows.eigenvalues / 2
    assert risks.mean() == pytest.approx(found.excess_risk, rel=0.03)
    assert risks.std() == pytest.approx(found.excess_risk_std, rel=0.05)


@pytest.mark.parametrize("law", FEATURE_LAWS)
@pytest.mark.parametrize("noise", LABEL_NOISE_LAWS)
def test_slopes_in_python_and_compiled_are_equal_bit_for_bit(rng, law, noise):
    stated = replace(problem(law), label_noise_law=noise)
    rows = rows_of(stated)
    of_rows, still = clipped_rows(stated, rows), np.zeros(3)
    for scale, bias in ((0.01, 9.0), (1.0, 0.5), (3.0, 1e80), (np.inf, 2.0)):
        widths, factors = scale * rng.uniform(1, 2, (2, rows.norms.size))
        given = widths, np.minimum(factors, 2.0), bias * rng.uniform(size=3), still
        compiled, slow = np.empty((2, 3, 3))
        share = clipped_slopes(of_rows, *given, compiled)
        assert share == clipped_slopes.py_func(of_rows, *given, slow)
        assert compiled.tolist() == slow.tolist()


def test_fourth_moments_tell_the_laws_apart():
    # Of one coordinate: 9/5, 3 and 9, to four standard errors of 2048 rows (of t5, two).
    for law, exact, within in (("uniform", 1.8, 0.15), ("gaussian", 3.0, 0.9)):
        rows = rows_of(problem(law, [1.0]))
        assert rows.weights @ rows.energies[:, 0] ** 2 == pytest.approx(exact, abs=within)
    heavy = rows_of(problem("student_t5", [1.0]))
    assert heavy.weights @ heavy.energies[:, 0] ** 2 > 4


@pytest.mark.parametrize(
    ("width", "mean"), [(1e-4, 0.7), (0.3, 0.0), (0.3, 1e-5), (1.0, 0.7), (1.0, 5.0), (4.0, 0.7)]
)
def test_clipped_moments_are_the_integrals(width, mean):
    std = 0.8

    def integral(function):
        points = sorted({-width, width, mean})
        value, _ = quad(
            lambda r: function(r) * norm.pdf(r, mean, std),
            mean - 12 * std,
            mean + 12 * std,
            points=[point for point in points if abs(point - mean) < 12 * std],
            limit=200,
        )
        return value

    one = Problem(1000, [1.0], signal=1.0, label_noise_std=std, feature_law="one_hot")
    slopes = np.empty((3, 1))
    whole = clipped_slopes(
        clipped_rows(one, rows_of(one)),
        np.array([width]),
        np.ones(1),
        np.array([mean**2]),
        np.zeros(1),
        slopes,
    )
    drift, shares, square = slopes
    share = norm.cdf(width, mean, std) - norm.cdf(-width, mean, std)
    assert shares == whole == pytest.approx(share, rel=1e-8)
    assert square == pytest.approx(integral(lambda r: np.clip(r, -width, width) ** 2), rel=1e-6)
    if mean > 1e-3:
        first = integral(lambda r: np.clip(r, -width, width))
        assert drift * mean == pytest.approx(first, rel=1e-6)
    else:
        assert drift == pytest.approx(share, rel=1e-6)
    if mean == 0:
        plain = noise_moments(np.array(width), label_noise_std=std)
        assert plain[0] == pytest.approx(share, rel=1e-8)
        assert plain[1] == pytest.approx(float(square[0]), rel=1e-6)


def test_series_are_the_closed_forms_to_rounding():
    width = np.concatenate([np.geomspace(1e-12, 0.02, 500), np.linspace(0.02, 10, 5001)])
    share, square = noise_moments(width, label_noise_std=1.0)
    # A few units in the last place on either side.
    np.testing.assert_allclose(share, erf(width / np.sqrt(2)), rtol=1e-14)
    # E min(|r|, w)², of which the part inside is a χ² law's, with three degrees of freedom.
    exact = gammainc(1.5, width**2 / 2) + width**2 * erfc(width / np.sqrt(2))
    # SciPy's function is off by up to ten units in the last place.
    np.testing.assert_allclose(square, exact, rtol=1e-13)
    assert np.isnan(noise_moments(np.array(np.nan), label_noise_std=1.0)).all()
    assert noise_moments(np.array(np.inf), label_noise_std=2.0) == (1.0, 4.0)


@pytest.mark.parametrize(("law", "diverged"), [("gaussian", np.inf), ("student_t3", 0.2)])
def test_slopes_are_means_over_rows(law, diverged, rng):
    stated = Problem(
        1000, np.geomspace(0.1, 1, 9), signal=1.0, label_noise_std=0.7, label_noise_law=law
    )
    rows = rows_of(stated, count=50)
    widths, factors = rng.uniform(0.1, 3, (2, 50))
    variance = rng.uniform(0, 0.1, rows.eigenvalues.size)
    variance[0] = diverged
    found = np.empty((3, 9))
    of_rows = clipped_rows(stated, rows)
    whole = clipped_slopes(of_rows, widths, factors, np.zeros(9), variance, found)
    share, square = noise_moments(
        widths, label_noise_std=0.7, law=law, other_variance=rows.quadratic(finite(variance))
    )
    exact = [
        rows.per_coordinate(each)
        for each in (factors * share, factors * share, factors**2 * square)
    ]
    np.testing.assert_allclose(found, exact, rtol=1e-13)
    assert whole == pytest.approx(share @ rows.weights, rel=1e-13)


@pytest.mark.parametrize(
    ("law", "kurtosis"), [("gaussian", 3.0), ("uniform", 1.8), ("student_t5", 9)]
)
def test_an_error_has_the_fourth_moment_of_its_direction(law, kurtosis):
    even = rows_of(Problem(1000, np.ones(4), signal=1.0, label_noise_std=1.0, feature_law=law))
    found = (3 - 2 * even.peaks) * (4 + kurtosis - 1) / 4
    if law == "gaussian":
        assert found == pytest.approx(3)
        return
    assert found == pytest.approx(3 + (kurtosis - 3) / 4)
    one = Problem(1000, np.ones(4), signal=np.eye(4)[2], label_noise_std=1.0, feature_law=law)
    rows = rows_of(one)
    assert (rows.multiplicities.tolist(), rows.squared_signal.tolist()) == ([3, 1], [0, 1])
    assert rows.peaks[1] == pytest.approx(1)


@pytest.mark.parametrize("ratio", [0.01, 0.1, 0.3])
def test_nodes_have_the_moments_of_marchenko_and_pastur(ratio):
    nodes, weights = sample_nodes(ratio)
    moments = [float(weights @ nodes**power) for power in (0, 1, 2, 3)]
    np.testing.assert_allclose(moments, [1, 1, 1 + ratio, 1 + 3 * ratio + ratio**2])
    assert weights @ (1 / nodes) == pytest.approx(1 / (1 - ratio), rel=1e-3)


@pytest.mark.parametrize("ratio", [0.0, 0.02, 0.2])
def test_least_squares_is_inflated_by_its_degrees_of_freedom(ratio):
    found = sampling_inflation(
        np.full((1, 3), np.inf), np.full(3, 1 / 3), ratio=ratio, label_noise_std=2.0
    )
    assert found == pytest.approx([1 / (1 - ratio)], rel=1e-6)


def test_a_huber_regression_is_inflated_as_in_a_simulation(rng):
    # Its minimiser by Newton steps; 40 data sets of p / n = 0.1 give 2.4 % of standard error.
    n, p, width = 600, 60, 0.8
    errors = []
    for _ in range(40):
        x, z = rng.standard_normal((n, p)), rng.standard_normal(n)
        theta = np.zeros(p)
        for _ in range(30):
            r = z - x @ theta
            inside = np.abs(r) <= width
            theta = theta + np.linalg.solve(
                x[inside].T @ x[inside] + 1e-6 * np.eye(p), x.T @ np.clip(r, -width, width)
            )
        errors.append(theta @ theta)
    share, square = noise_moments(np.array(width), label_noise_std=1.0)
    inflation = sampling_inflation(
        np.full((1, 1), width), np.ones(1), ratio=p / n, label_noise_std=1.0
    )
    predicted = float(inflation[0]) * p / n * square / share**2
    error = np.std(errors, ddof=1) / np.sqrt(len(errors))
    assert np.mean(errors) == pytest.approx(predicted, abs=4 * error)
    assert error < 0.05 * predicted


@pytest.mark.parametrize("law", LABEL_NOISE_LAWS)
def test_the_scales_have_mean_square_one(law):
    squares, weights = squared_scales(law)
    assert weights.sum() == pytest.approx(1, abs=1e-12)
    assert squares @ weights == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("law", [*DEGREES, "laplace"])
@pytest.mark.parametrize("width", [0.25, 1.0, 3.0])
def test_what_clipping_leaves_is_that_of_the_law(law, width):
    """Cells of the scale are worth 1 % of each moment; Gaussian noise would be off by 10 %."""
    if law == "laplace":
        student = stats.laplace(scale=np.sqrt(0.5))
    else:
        degrees = DEGREES[law]
        student = stats.t(degrees, scale=np.sqrt((degrees - 2) / degrees))
    share = 1 - 2 * student.sf(width)
    inside = quad(lambda r: r**2 * student.pdf(r), -width, width)[0]
    found = noise_moments(np.array(width), label_noise_std=1.0, law=law)
    assert found[0] == pytest.approx(share, rel=0.01)
    assert found[1] == pytest.approx(inside + width**2 * (1 - share), rel=0.011)


def test_an_error_of_the_prediction_adds_its_variance():
    found = noise_moments(np.array(1.3), label_noise_std=0.6, other_variance=0.64)
    assert found == pytest.approx(noise_moments(np.array(1.3), label_noise_std=1.0), rel=1e-12)


def kept(width, variance):
    """Probability of |r| ≤ w and E clip(r, ±w)², for r ~ N(0, variance), from the normal law."""
    reach = width / np.sqrt(variance)
    inside = 2 * norm.cdf(reach) - 1
    square = inside - 2 * reach * norm.pdf(reach) + reach**2 * 2 * norm.sf(reach)
    return inside, variance * square


@pytest.mark.parametrize("seed", range(8))
def test_inflation_solves_its_equations_at_any_width_and_ratio(seed):
    """It ended after twelve iterations: 22 % low at p = 0.89 n, and circled at narrow widths."""
    rng = np.random.default_rng(seed)
    width, ratio = 10.0 ** rng.uniform(-1, 1), rng.uniform(0.01, 0.97)
    std = 10.0 ** rng.uniform(-2, 2)
    found = sampling_inflation(
        np.full((1, 3), width * std), np.array([0.2, 0.3, 0.5]), ratio=ratio, label_noise_std=std
    )
    inside, square = kept(width, 1.0)
    variance = float(found[0]) * ratio * square / inside**2

    def excess(part):
        return part * kept(width / (1 - part), 1 + variance)[0] - ratio

    part = float(brentq(excess, ratio, 1 - 1e-12, xtol=1e-14))
    again = part**2 * kept(width / (1 - part), 1 + variance)[1] / ratio
    # The last change of an iteration that is left; bracketed solutions have all digits.
    assert again == pytest.approx(variance, rel=1e-3)


@pytest.mark.parametrize("ratio", [0.05, 0.9])
def test_inflation_at_narrow_clips_is_that_of_least_absolute_deviations(ratio):
    """There κ = P(|r| ≤ u) and κτ² = E clip(r, ±u)², of which the width itself is no part."""
    std, other = 0.3, 0.1
    widths = 10.0 ** np.array([-4.5, -8, -11.5])[:, None]
    found = sampling_inflation(
        widths, np.ones(1), ratio=ratio, label_noise_std=std, other_variance=other
    )

    def gain(variance):
        spread = std**2 + variance
        reach = norm.isf((1 - ratio) / 2) * np.sqrt(spread + other)
        return kept(reach, spread)[1] / ratio - variance

    variance = float(brentq(gain, 1e-15, 1e6, xtol=1e-18, rtol=1e-12))
    expected = variance / (ratio * (std**2 + other) * np.pi / 2)
    # A settled iteration is left at its last change.
    np.testing.assert_allclose(found, expected, rtol=1e-3)


@pytest.mark.parametrize("excess", [1e-1, 1e-6])
def test_resolvent_is_the_root_of_its_quadratic_up_to_the_edge(excess):
    count, tau = 7.0, 0.4
    diagonal = 2 * tau * np.sqrt(count * (1 + excess))
    rows = SimpleNamespace(total=lambda values: values @ np.array([count]))
    total = (diagonal - np.sqrt(diagonal**2 - 4 * tau**2 * count)) / (2 * tau**2)
    found, _ = _resolvent(np.array([diagonal]), rows, tau)
    assert found[0] == pytest.approx(1 / (diagonal - tau**2 * total), rel=1e-7)
