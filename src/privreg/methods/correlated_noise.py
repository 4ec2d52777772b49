r"""One epoch of DP-FTRL whose noise is correlated over the steps: runs, and their predicted error.

A step's noise enters the last iterate through the contractions after it. With
:math:`v_t = \eta\prod_{u>t}a_u` along an eigenvector and the decoder's Toeplitz matrix B, the
private noise leaves :math:`\sigma^2\|B^\top v\|^2` and each batch its own sampling noise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, ClassVar, Self

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft

from privreg.algorithms.samples import Samples
from privreg.checks import LEAST, MOST, require_count, require_number, require_scales
from privreg.methods.clipping import (
    LARGEST,
    ClippedRows,
    clipped_rows,
    clipped_slopes,
    squared_shift,
)
from privreg.methods.method import Candidates, Declared, Fit, Method
from privreg.methods.problem import ErrorMoments, Prediction, Problem, Regime, Rows
from privreg.noise.toeplitz import damped_square_root, damped_square_root_encoder
from privreg.privacy.budget import Budget, Neighbours, sum_sensitivity

FloatArray = NDArray[np.float64]
PASSES, STALE = 2, 0.05


@dataclass(frozen=True)
class CorrelatedNoise(Method):
    """One epoch of DP-FTRL with damped square-root noise, whose last iterate is used.

    Parameters
    ----------
    batch_size : int
        Rows a step, at least 1.
    step_size : float
        η.
    clip_norm : float
        Largest gradient norm.
    damping : float
        ν of the noise's correlation, in [0, 1]; 1 is independent noise.

    Guarantee
    ---------
    That of `dp_ftrl` with the noise of `FTRLMechanism.for_budget`: it covers all iterates.

    Examples
    --------
    >>> problem = Problem(10_000, [1.0] * 10, signal=1.0, label_noise_std=1.0)
    >>> method = CorrelatedNoise(batch_size=200, step_size=0.15, clip_norm=3.0, damping=0.1)
    >>> method.predict(problem, Budget.zcdp(0.5)).holds
    True

    Source
    ------
    choquettechoo2024, Theorem 1.1 and Section 2.3.
    """

    name: ClassVar[str] = "correlated_noise"
    relations: ClassVar[frozenset[Neighbours]] = frozenset(
        {Neighbours.REPLACE_ONE, Neighbours.ZERO_OUT}
    )
    gaussian_dp: ClassVar[bool] = True
    batch_size: int
    step_size: float
    clip_norm: float
    damping: float

    def __post_init__(self) -> None:
        require_count("batch_size", self.batch_size)
        require_scales(step_size=self.step_size, clip_norm=self.clip_norm)
        require_number("damping", self.damping, least=0, most=1)

    @classmethod
    def candidates(
        cls, problem: Problem, budget: Budget, *, intervals: bool = True
    ) -> list[Candidates[Self]]:
        n = problem.sample_size
        unit = problem.label_noise_std * float(np.sqrt(problem.eigenvalues.sum()))
        smallest, largest = float(problem.eigenvalues.min()), float(problem.eigenvalues.max())

        def settings(point: Sequence[float]) -> Any:
            steps, size, clip, damping = np.exp(point)
            scales = np.clip([float(size) / largest, float(clip) * unit], LEAST, MOST).tolist()
            damped = float(min(1.0, damping * size * smallest / largest))
            return cls(max(1, round(n / float(steps))), scales[0], scales[1], damped)

        grids = (
            np.log([25.0, 120.0]),
            np.log([0.03, 0.1, 0.3]),
            np.log([0.5, 1.5]),
            np.log([1.0, 1e6]),
        )
        return [Candidates.zoomed(cls.name, settings, grids, zooms=1, clip="clip_norm")]

    def _prepare(
        self, samples: Samples, budget: Budget, declared: Declared
    ) -> Callable[[np.random.Generator], Fit]:
        from privreg.algorithms.dp_ftrl import FTRLMechanism, dp_ftrl

        n = samples.sample_size
        mechanism = FTRLMechanism.for_budget(
            damped_square_root(-(-n // self.batch_size), damping=self.damping),
            clip_norm=self.clip_norm,
            budget=budget,
            sample_size=n,
            batch_size=self.batch_size,
        )

        def fit(rng: np.random.Generator) -> Fit:
            run = dp_ftrl(samples, mechanism=mechanism, step_size=self.step_size, rng=rng)
            return Fit(run.iterates, (("the epoch", budget),))

        return fit

    @classmethod
    def _predict(
        cls, settings: Sequence[Self], problems: Sequence[Problem], rows: Rows, budget: Budget
    ) -> list[list[Prediction]]:
        followed = [_follow(problems[0], rows, method, budget) for method in settings]
        return [
            [_regime(*moments.predictions(problem, rows)) for moments in followed]
            for problem in problems
        ]


def _regime(found: Prediction) -> Prediction:
    """Regime of one epoch with correlated noise.

    The recursion of second moments is that of linear descent, in which clipping enters with its
    mean effect. Divergence is the only threshold; docs/prediction.md has the simulations.

    Source
    ------
    choquettechoo2024, Section 2.3.
    """
    if not found.holds:
        return found
    return found.marked(Regime.EXTENDED, "second moments of linear descent, clipping on average")


def _follow(problem: Problem, rows: Rows, method: CorrelatedNoise, budget: Budget) -> ErrorMoments:
    """Moments of the error of the last iterate."""
    batch, eta = min(method.batch_size, problem.sample_size), method.step_size
    steps = ceil(problem.sample_size / batch)
    coefficients = damped_square_root(steps, damping=method.damping)
    encoder = damped_square_root_encoder(steps, damping=method.damping)
    change = float(sum_sensitivity(method.clip_norm, neighbours=budget.neighbours))
    std = float(np.sqrt(encoder @ encoder)) * change / (batch * budget.root)
    widths = method.clip_norm / rows.norms
    signal = rows.squared_signal
    private = np.zeros_like(signal)
    own = clipped_rows(problem, rows)
    for _ in range(PASSES):
        contractions = np.empty((steps, len(signal)))
        bias, sampling = np.ones_like(signal), np.zeros_like(signal)
        last, factors = np.full_like(signal, -1.0), np.ones_like(widths)
        _descent(
            own, widths, signal, private, eta, batch, factors, last, contractions, bias, sampling
        )
        after = np.cumprod(contractions[::-1], axis=0)
        loads = eta * np.concatenate([np.ones((1, len(signal))), after[:-1]])
        # Reversed in time, so that the transposed product is a convolution.
        size = next_fast_len(2 * steps - 1, real=True)
        spectrum = rfft(coefficients, size)[:, None] * rfft(loads, size, axis=0)
        loads = np.asarray(irfft(spectrum, size, axis=0))[:steps]
        private = std**2 * np.sum(loads**2, axis=0)
    moved = squared_shift(problem, rows, widths[None], covered=1 - bias)
    return ErrorMoments((bias**2 * signal)[None], (sampling + private)[None], moved)


@njit(nogil=True, cache=True, error_model="numpy")
def _descent(
    rows: ClippedRows,
    widths: FloatArray,
    signal: FloatArray,
    private: FloatArray,
    eta: float,
    batch: int,
    factors: FloatArray,
    last: FloatArray,
    contractions: FloatArray,
    bias: FloatArray,
    sampling: FloatArray,
) -> None:
    """Contraction of each step, (steps, groups), the signal's share left, and sampling variance.

    The last four are written; slopes are computed again where an energy has left the `last` one.
    """
    groups, slopes = len(signal), np.empty((3, len(signal)))
    squares, variance = np.empty_like(signal), np.empty_like(signal)
    energy = np.empty_like(signal)
    for step in range(len(contractions)):
        stale = False
        # Loops over numbers: a process's first expression of several arrays compiles for 1.7 s.
        for group in range(groups):
            squares[group] = bias[group] ** 2 * signal[group]
            variance[group] = sampling[group] + private[group]
            whole = squares[group] + sampling[group] + private[group]
            energy[group] = whole if whole < LARGEST else LARGEST
            stale |= not abs(energy[group] - last[group]) <= STALE * last[group]
        if stale:
            for group in range(groups):
                last[group] = energy[group]
            slopes = clipped_slopes(rows, widths, factors, squares, variance)[0]
        for group in range(groups):
            drift, pull, kick = slopes[0, group], slopes[1, group], slopes[2, group]
            contraction = 1 - eta * pull
            contractions[step, group] = contraction
            bias[group] = bias[group] * (1 - eta * drift)
            spread = max(kick - pull**2 * last[group], 0.0)
            sampling[group] = contraction**2 * sampling[group] + eta**2 * spread / batch
