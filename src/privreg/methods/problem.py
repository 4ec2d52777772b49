"""Problems stated without data, and predictions of a run's error."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache
from math import sqrt
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri, stdtrit

from privreg.checks import (
    Immutable,
    frozen,
    require_choice,
    require_count,
    require_frozen,
    require_number,
    require_real,
    require_scale,
    require_scales,
    short,
)
from privreg.kernels import standard_normal

FloatArray = NDArray[np.float64]
FeatureLaw = Literal["gaussian", "uniform", "student_t5", "one_hot"]
FEATURE_LAWS: tuple[FeatureLaw, ...] = get_args(FeatureLaw)
LabelNoiseLaw = Literal["gaussian", "laplace", "student_t5", "student_t3"]
LABEL_NOISE_LAWS: tuple[LabelNoiseLaw, ...] = get_args(LabelNoiseLaw)
SKEWED_LAWS = ("exponential", "lognormal")
WHOLE_LAWS = ("binary", "poisson")  # with a mean: "binary_0.2"


@dataclass(frozen=True)
class Problem(Immutable):
    r"""A linear regression described without looking at the data.

    .. math:: y = x^\top\theta^* + \xi, \qquad \mathbb E\,xx^\top = \mathrm{diag}(\lambda),\quad
        \operatorname{Var}\xi = \sigma^2

    Coordinates are along the features' eigenvectors; the methods do not depend on this choice.

    Parameters
    ----------
    sample_size : int
        Public number of rows n, at least 2.
    eigenvalues : array_like, shape (p,)
        Eigenvalues λ of the features' second moment, each in [1e-12, 1e12].
    signal : float or array_like, shape (p,)
        Coefficients θ* along the eigenvectors. One number is the norm of p equal coefficients.
    label_noise_std : float
        Standard deviation σ of the label noise.
    feature_law : {"gaussian", "uniform", "student_t5", "one_hot"}
        Law of a row's coordinates, which are independent and have mean 0. A "one_hot" row has one
        entry of 1 instead; the eigenvalues are then the categories' probabilities and sum to 1.
    feature_norm : float, optional
        Declared bound on a row's norm; methods that need it shorten longer rows. The default
        is √(2 Σλ), or 1 for one-hot rows.
    label_bound : float, optional
        Declared bound on a label's absolute value; by default four standard deviations of a label.
    label_noise_law : {"gaussian", "laplace", "student_t5", "student_t3", "binary", "poisson"}
        Law of the label noise, of mean 0 and variance σ². "binary" is for labels 0 and 1, "poisson"
        for counts; the variances of signal and noise then give the labels' mean. A suffix states
        the mean instead: "binary_0.2" has a mean of 0.2, and its labels may be in any unit.
    misfit : float
        Correlation κ, in [0, 1], of the features with the part of a residual that clipping removes
        (`privreg.methods.clipping.squared_shift`). It is 0 if the noise is independent of the
        features, and 0.2 to 0.5 on real tables.

    Examples
    --------
    >>> problem = Problem(10_000, np.ones(10), signal=1.0, label_noise_std=1.0)
    >>> problem.dimension, round(problem.null_risk, 3)
    (10, 0.5)
    """

    sample_size: int
    eigenvalues: FloatArray
    signal: FloatArray = field(repr=False)
    label_noise_std: float
    feature_law: FeatureLaw
    feature_norm: float
    label_bound: float
    label_noise_law: LabelNoiseLaw
    misfit: float

    def __init__(
        self,
        sample_size: int,
        eigenvalues: ArrayLike,
        *,
        signal: ArrayLike,
        label_noise_std: float,
        feature_law: str = "gaussian",
        feature_norm: float | None = None,
        label_bound: float | None = None,
        label_noise_law: str = "gaussian",
        misfit: float = 0.0,
    ) -> None:
        values = require_frozen("eigenvalues", eigenvalues, shape=(None,), least=1e-12, most=1e12)
        law = require_choice("feature_law", feature_law, FEATURE_LAWS)
        one_hot = law == "one_hot"
        if one_hot and not np.isclose(values.sum(), 1.0, rtol=1e-6):
            raise ValueError(
                "eigenvalues must be probabilities of categories and sum to 1 for one-hot rows, "
                "got another sum"
            )
        coefficients = require_real("signal", signal)
        if coefficients.ndim == 0:
            norm = require_scale("signal", signal, zero=True)
            coefficients = np.full(values.size, norm / np.sqrt(values.size))
        coefficients = require_frozen(
            "signal", coefficients, shape=values.shape, least=-1e12, most=1e12
        )
        largest = 1.0 if one_hot else np.sqrt(2 * values.sum())
        noise, norm, bound = require_scales(
            label_noise_std=label_noise_std,
            feature_norm=largest if feature_norm is None else feature_norm,
            label_bound=1.0 if label_bound is None else label_bound,
        )
        variance = float(values @ coefficients**2 + noise**2)
        bound = 4 * sqrt(variance) if label_bound is None else bound
        for name, value in {
            "sample_size": require_count("sample_size", sample_size, least=2),
            "eigenvalues": values,
            "signal": coefficients,
            "label_noise_std": noise,
            "feature_law": law,
            "feature_norm": norm,
            "label_bound": bound,
            "label_noise_law": _noise_law(str(label_noise_law), noise**2, variance),
            "misfit": require_number("misfit", misfit, least=0, most=1),
        }.items():
            object.__setattr__(self, name, value)

    def over(
        self,
        *,
        signal: ArrayLike = (1.0,),
        label_noise_std: ArrayLike = (1.0,),
        noise_shapes: Sequence[tuple[str, float]] | None = None,
    ) -> tuple[Problem, ...]:
        """Problems with all combinations of the given factors and noise shapes.

        Bounds stay as declared, since they are public and the same for all problems.

        Parameters
        ----------
        signal, label_noise_std : array_like, shape (k,)
            Factors that multiply the problem's own values.
        noise_shapes : sequence of (label_noise_law, misfit), optional
            Pairs to combine with these factors; by default the problem's own pair.

        Examples
        --------
        >>> problem = Problem(10_000, np.ones(10), signal=1.0, label_noise_std=1.0)
        >>> shapes = [("gaussian", 0.0), ("student_t3", 0.3)]
        >>> len(problem.over(signal=(0.5, 2.0), noise_shapes=shapes))
        4
        """
        own = [(self.label_noise_law, self.misfit)]
        shapes: Any = own if noise_shapes is None else noise_shapes
        if not isinstance(shapes, (list, tuple)) or {np.shape(each) for each in shapes} != {(2,)}:
            raise ValueError(
                f"noise_shapes must be a list of pairs (law, misfit), got {short(noise_shapes)}"
            )
        return tuple(
            replace(
                self,
                signal=scale * self.signal,
                label_noise_std=factor * self.label_noise_std,
                label_noise_law=law,
                misfit=misfit,
            )
            for scale in np.asarray(signal)
            for factor in np.asarray(label_noise_std)
            for law, misfit in shapes
        )

    @property
    def dimension(self) -> int:
        """Number of features p."""
        return len(self.eigenvalues)

    @property
    def null_risk(self) -> float:
        r"""Excess risk of predicting the mean, :math:`\tfrac12\sum_j\lambda_j\theta_j^{*2}`."""
        return float(self.eigenvalues @ self.signal**2) / 2

    @property
    def least_squares_length(self) -> float:
        r"""Root mean square length of the 95 % intervals of least squares without privacy.

        .. math:: 2\,\Phi^{-1}(0.975)\,\sigma \Big(\frac1{(n - p)p} \sum_j \lambda_j^{-1}\Big)^{1/2}
        """
        mean = float(np.mean(1 / self.eigenvalues))
        left = max(self.sample_size - self.dimension, 1)
        return 2 * float(ndtri(0.975)) * self.label_noise_std * float(np.sqrt(mean / left))

    @property
    def label_std(self) -> float:
        """Standard deviation of a label, from signal and noise."""
        return float(np.sqrt(2 * self.null_risk + self.label_noise_std**2))


def _noise_law(law: str, noise: float, variance: float) -> Any:
    """A law of label noise; for labels that are whole numbers it includes their mean."""
    if law in SKEWED_LAWS:
        raise ValueError(f"label_noise_law must be symmetric, got {law!r}; use `predicted_length`")
    found = re.fullmatch(r"(binary|poisson)(?:_(\d*\.?\d+))?", law)
    if found is None:
        return require_choice("label_noise_law", law, (*LABEL_NOISE_LAWS, *WHOLE_LAWS))
    kind, mean = found.groups()
    if mean is None and kind == "binary":
        require_number("variance of labels of 0 and 1", variance, most=0.25)
        noise = 0.5 - sqrt(0.25 - variance)
    options = {"least": 1e-6, "most": 0.999 if kind == "binary" else 1e4}
    return f"{kind}_{require_number('mean of labels', float(mean or noise), **options):.6f}"


ROWS, SEED = 2048, 20250516
# Modes of one group differ by at most this factor; more groups only for wider spectra.
GROUP_WIDTH, MOST_GROUPS = 1.1, 24
# E x_j⁴ / λ_j² of coordinates; a one-hot row has but one that is not 0.
KURTOSES = {"gaussian": 3.0, "uniform": 1.8, "student_t5": 9.0, "one_hot": 1e9}


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows drawn from the features' law, with squares summed over groups of coordinates."""

    weights: FloatArray  # of sum 1, (rows,)
    energies: FloatArray  # sums of x_j² over a group, (rows, groups), of mean multiplicity × λ
    norms: FloatArray  # (rows,)
    eigenvalues: FloatArray  # mean of each group, (groups,)
    multiplicities: FloatArray  # number of coordinates of each group
    squared_signal: FloatArray  # mean of θ*_j² over a group, weighted by the eigenvalue
    peaks: FloatArray  # half of (3 - kurtosis of a group's error in a given row)

    def per_coordinate(self, values: FloatArray) -> FloatArray:
        """Means (..., groups) over rows of `values` (..., rows) times x_j², for one j per group."""
        return (self.weights * values) @ self.energies / self.multiplicities

    def quadratic(self, variances: FloatArray) -> FloatArray:
        """xᵀ diag(C) x of every row, shape (..., rows), for variances C, shape (..., groups)."""
        return variances @ self.energies.T

    def total(self, values: FloatArray) -> FloatArray:
        """Sum over all coordinates, shape (...), of values per group, shape (..., groups)."""
        return values @ self.multiplicities


def rows_of(problem: Problem, *, count: int = ROWS) -> Rows:
    """Draw rows from a problem's law; equal problems have equal rows."""
    order = np.argsort(problem.eigenvalues)
    values, signal = problem.eigenvalues[order], problem.signal[order]
    # Equal widths in the logarithm.
    span = np.log(values[-1] / values[0])
    width = max(np.log(GROUP_WIDTH), span / MOST_GROUPS * (1 + 1e-9))
    classes = np.floor(np.log(values / values[0]) / width + 1e-9)
    shares = values * signal**2 / (2 * problem.null_risk or 1.0)
    if problem.feature_law != "gaussian" or span > 0:
        # Directions differ: coordinates with more than 1/4, 1/16 or 1/64 of the signal stand apart.
        classes += np.ceil(np.log(64 * shares.clip(1 / 64, 1)) / np.log(4) - 1e-9) / 4
        order = np.argsort(classes, kind="stable")
        values, shares, classes = values[order], shares[order], classes[order]
    labels = np.unique(classes, return_inverse=True)[1]
    counts = np.bincount(labels).astype(float)
    means = np.bincount(labels, weights=values) / counts
    energy, squares = (np.bincount(labels, shares**power).astype(float) for power in (1, 2))
    uneven = np.divide(squares, energy**2, out=1 / counts, where=energy > 0)
    # For m coordinates of kurtosis k the energy has E E² / (E E)² = (m + k - 1) / m. An error M has
    # E M⁴ / (E M²)² = 3 + (k - 3) u, with u = 1/m if it is even and u = 1 along one coordinate.
    kurtosis = KURTOSES[problem.feature_law]
    fourth = (3 + (kurtosis - 3) * uneven) * counts / (counts + kurtosis - 1)
    energy *= 2 * problem.null_risk / (counts * means)
    weights, energies = _energies(
        problem.feature_law, tuple(counts.astype(int).tolist()), tuple(means.tolist()), count
    )
    norms = np.sqrt(energies.sum(axis=1))
    return Rows(
        weights, energies, norms, means, counts, energy, np.clip((3 - fourth) / 2, 0.0, 1.0)
    )


@lru_cache(maxsize=64)
def _energies(
    law: FeatureLaw, counts: tuple[int, ...], means: tuple[float, ...], rows: int
) -> tuple[FloatArray, FloatArray]:
    number, scales = np.array(counts), np.array(means)
    if law == "one_hot":
        return frozen(number * scales), frozen(np.eye(len(counts)))
    rng = np.random.Generator(np.random.SFC64(SEED))
    starts = np.concatenate([[0], np.cumsum(number)[:-1]])
    shape = rows, int(number.sum())
    if law == "uniform":
        coordinates = rng.uniform(-np.sqrt(3), np.sqrt(3), shape)
    elif law == "student_t5":
        # A few drawn tails would decide the error: each coordinate takes equally likely quantiles.
        quantiles = np.sqrt(3 / 5) * stdtrit(5, (np.arange(rows) + 0.5) / rows)
        coordinates = rng.permuted(np.tile(quantiles, (shape[1], 1)), axis=1).T
    else:
        coordinates = standard_normal(rng, shape)
    squares = np.add.reduceat(coordinates**2, starts, axis=1)
    # The second moments are exact; only the shape of the law is sampled.
    squares *= number * scales / squares.mean(axis=0)
    return frozen(np.full(rows, 1 / rows)), frozen(squares)


# Largest share of the signal, and of the excess risk, by which a clip may move its target.
MOST_SHIFT, MOST_BIAS = 0.03, 0.05
WHOLE = "no theory describes this clipping of labels 0 and 1, or of counts"
LABEL_CLIPPED = "label_bound clips labels that the fit needs: declare a wider one"
# Derived in `too_few_rows`.
MOST_RATIO, MOST_RATIO_WHOLE = 0.15, 0.11


class Regime(StrEnum):
    """Extent to which the theory behind a prediction holds for the problem and settings."""

    PROVEN = "proven"
    """The assumptions of a theorem or of an exact law hold; `reason` names it."""
    EXTENDED = "extended"
    """Outside the proven range, but simulations agreed to 10 %."""
    OUTSIDE = "outside"
    """A setting in which the theory is known to fail; the numbers are unreliable."""


@dataclass(frozen=True)
class Prediction:
    """Predicted error of a private run.

    Attributes
    ----------
    excess_risk, excess_risk_std : float
        Mean over data and private noise, and deviation over runs, of half the excess squared
        prediction error, in squared label units; `inf` if the run diverges. A deviation below 0.3
        of the mean may be off by a factor of 2.2.
    parameter_error : float
        Mean squared distance of the coefficients to θ*, in squared coefficient units.
    interval_length : float
        Root mean square length of 95 % intervals for θ*_j from the exact law of the run, in units
        of a coefficient. The length allows for bias and variance.
    null_risk : float
        Excess risk of predicting the mean, for comparison.
    regime : Regime
        Extent to which the theory holds here.
    reason : str
        Theorem that applies, or assumption that is violated.
    warnings : tuple of str
        Further warnings, one line each.
    """

    excess_risk: float
    excess_risk_std: float
    parameter_error: float
    interval_length: float
    null_risk: float
    regime: Regime
    reason: str
    warnings: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """True if the theory holds for these settings and the numbers are finite."""
        return self.regime is not Regime.OUTSIDE and bool(np.isfinite(self.excess_risk))

    @property
    def beats_the_mean(self) -> bool:
        """True if the predicted error is below the error of predicting the mean."""
        return bool(self.excess_risk < self.null_risk)

    def marked(self, regime: Regime, reason: str) -> Prediction:
        """Copy of the prediction with this regime and its `reason` (a theorem or an expansion)."""
        return replace(self, regime=regime, reason=reason)

    def with_doubt(self, reason: str) -> Prediction:
        """Copy of the prediction marked as unreliable, with the reason."""
        return self.marked(Regime.OUTSIDE, reason)

    def expanded(self, unclipped: float) -> Prediction:
        """Copy with the regime and the reason of an expansion around θ*."""
        reason = f"{100 * (1 - unclipped):.0f} % of gradients clipped: expansion around the truth"
        return self.marked(Regime.EXTENDED, reason)


@dataclass(frozen=True, eq=False)
class ErrorMoments:
    """Moments of the Gaussian error in one coordinate per group, shape (settings, groups)."""

    squared_bias: FloatArray
    variance: FloatArray  # over data and private noise
    shift: FloatArray | float = 0.0  # of the squared bias at a misfit of 1, by `squared_shift`
    changed: FloatArray | float = 0.0  # slopes of labels that are whole numbers, by `slope_shift`

    def predictions(self, problem: Problem, rows: Rows) -> list[Prediction]:
        """Prediction for each setting; numbers that are not finite count as divergence."""
        # Without misfit there is no shift, even where the shift at a misfit of 1 is infinite.
        shift = problem.misfit**2 * self.shift if problem.misfit else 0.0
        squared_bias = self.squared_bias + shift
        energy = squared_bias + self.variance
        risk = rows.total(rows.eigenvalues * energy) / 2
        square = self.variance**2 / 2 + squared_bias * self.variance
        spread = rows.total(rows.eigenvalues**2 * square)
        error = rows.total(energy)
        # An interval about a biased estimate misses θ* by its bias as well.
        length = 2 * ndtri(0.975) * np.sqrt(error / problem.dimension)
        null, changed = problem.null_risk, np.broadcast_to(self.changed, len(risk))
        clipped = (changed > MOST_SHIFT) | (changed**2 * null > MOST_BIAS * risk)
        most = 1e6 * (null + problem.label_noise_std**2)
        reason = "the run diverges: the step size is too large for the features' scale"
        diverged = Prediction(*(np.inf,) * 4, null, Regime.OUTSIDE, reason)
        return [
            Prediction(
                excess_risk=float(risk[at]),
                excess_risk_std=float(np.sqrt(spread[at])),
                parameter_error=float(error[at]),
                interval_length=float(length[at]),
                null_risk=null,
                regime=Regime.OUTSIDE if clipped[at] else Regime.EXTENDED,
                reason=WHOLE if clipped[at] else "",
            )
            if np.isfinite(risk[at]) and risk[at] < most
            else diverged
            for at in range(len(risk))
        ]


def too_few_rows(problem: Problem, unclipped: float) -> str | None:
    r"""Reason why there are too few rows for descent on clipped gradients; None if they suffice.

    The second moment of n rows has relative eigenvalues up to :math:`(1 + \sqrt\kappa)^2` with κ =
    p/n (Marchenko and Pastur). A full step for the population is stable in every direction if this
    edge is below 2, that is if κ < (√2 - 1)² = 0.172. The rule asks for κ of at most 0.15. Only
    rows with unclipped gradients, a share s, have curvature. With κ/s in place of κ, the rule asks
    for an edge of at most 1.77, that is κ/s ≤ 0.11. Above this, predictions were off by over 10 %.
    Source: Marčenko and Pastur (1967) for the edge; docs/prediction.md has the simulations.
    """
    ratio = problem.dimension / problem.sample_size
    if ratio <= MOST_RATIO and ratio / max(unclipped, 1e-3) <= MOST_RATIO_WHOLE:
        return None
    return (
        f"too few rows: {problem.sample_size} for {problem.dimension} features, with "
        f"{100 * unclipped:.0f} % of the gradients not clipped"
    )
