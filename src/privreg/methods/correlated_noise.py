r"""One epoch of DP-FTRL with noise correlated over the steps: runs, and their predicted error.

Step u contracts the noise of earlier steps by a factor a_u. Let :math:`v_t = \eta\prod_{u>t}a_u`
along an eigenvector, and let B be the decoder's Toeplitz matrix. Noise of deviation σ adds
:math:`\sigma^2\|B^\top v\|^2` to the last iterate's variance; batches add sampling noise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft

from privreg.algorithms.samples import Samples
from privreg.checks import LEAST, MOST, require_count, require_number, require_scales
from privreg.methods.clipping import all_clipped_slopes, clipped_rows, slope_shift, squared_shift
from privreg.methods.method import Candidates, Declared, Fit, Method
from privreg.methods.problem import ErrorMoments, Prediction, Problem, Regime, Rows
from privreg.noise.toeplitz import damped_square_root, damped_square_root_encoder
from privreg.privacy.budget import Budget, Neighbours, sum_sensitivity

FloatArray = NDArray[np.float64]
WORSE = "the predicted error exceeds that of predicting the mean; it may be half of the true one"
PASSES = 2


@dataclass(frozen=True)
class CorrelatedNoise(Method):
    """One epoch of DP-FTRL with damped correlated noise; the last iterate is the estimate.

    Parameters
    ----------
    batch_size : int
        Number of rows in a step, at least 1.
    step_size, clip_norm : float
        Step size η, and norm to which gradients are clipped.
    damping : float
        Damping ν of the noise's square-root correlation, in [0, 1]; 1 gives independent noise.

    Guarantee
    ---------
    Releasing all iterates spends the budget, as for `dp_ftrl` with `FTRLMechanism.for_budget`.

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
        cls, settings: Sequence[Self], problem: Problem, rows: Rows, budget: Budget
    ) -> Callable[[Problem], list[Prediction]]:
        moments = _follow(problem, rows, settings, budget)
        return lambda each: [_regime(found) for found in moments.predictions(each, rows)]


def _regime(found: Prediction) -> Prediction:
    """Regime of one epoch: divergence alone is refused (choquettechoo2024, Section 2.3)."""
    if not found.holds:
        return found
    marked = found.marked(Regime.EXTENDED, "linear descent with clipping's mean effect")
    return marked if marked.beats_the_mean else replace(marked, warnings=(WORSE,))


def _follow(
    problem: Problem, rows: Rows, methods: Sequence[CorrelatedNoise], budget: Budget
) -> ErrorMoments:
    """Moments of the errors of the last iterates."""
    n, signal = problem.sample_size, rows.squared_signal
    batches = np.minimum([each.batch_size for each in methods], n)
    eta, clips = (
        np.array([getattr(each, name) for each in methods])[:, None]
        for name in ("step_size", "clip_norm")
    )
    steps, widths = -(-n // batches), clips / rows.norms
    # Slopes are computed at each step up to the 50th, then once per block of 2 % of the way. The
    # last step is a block: its batch may be short, but is divided by the size of a full one.
    ends = [0]
    while ends[-1] < steps.max() - 1:
        ends.append(ends[-1] + 1 + ends[-1] // 50)
    counts = np.diff(np.minimum(ends, steps[:, None] - 1), append=steps[:, None])
    filled = (n - (steps - 1) * batches)[:, None] / batches[:, None]
    private = np.zeros((len(methods), len(signal)))
    of_rows, factors = clipped_rows(problem, rows), np.ones_like(widths)
    slopes = np.empty((len(methods), 3, len(signal)))
    drift, pull, kick = np.swapaxes(slopes, 0, 1)
    for _ in range(PASSES):
        contractions, bias, sampling = [], np.ones_like(private), np.zeros_like(private)
        for at, count in enumerate(counts.T[..., None]):
            size = eta * (filled if at == counts.shape[1] - 1 else 1.0)
            squares, variance = bias**2 * signal, sampling + private
            # Slopes of settings that have ended do not change.
            all_clipped_slopes(of_rows, count[:, 0] > 0, widths, factors, squares, variance, slopes)
            spread = np.maximum(kick - drift**2 * squares - pull**2 * variance, 0.0)
            contractions.append(1 - size * pull)
            square = contractions[-1] ** 2
            kept = square**count
            terms = np.where(square == 1, count, (1 - kept) / (1 - square))
            bias = bias * (1 - size * drift) ** count
            sampling = kept * sampling + size * eta * spread / batches[:, None] * terms
        taken = [
            np.repeat(each, of, axis=0)
            for each, of in zip(np.swapaxes(contractions, 0, 1), counts, strict=True)
        ]
        private = np.array(
            [_private(each, of, budget) for each, of in zip(taken, methods, strict=True)]
        )
        private /= batches[:, None] ** 2
    moved = squared_shift(problem, rows, widths, covered=1 - bias)
    changed = slope_shift(problem, rows, widths)
    return ErrorMoments(bias**2 * signal, sampling + private, moved, changed)


def _private(contractions: FloatArray, method: CorrelatedNoise, budget: Budget) -> FloatArray:
    """Variance of the last iterate from private noise, (groups,), for batches of one record."""
    steps, damping = len(contractions), method.damping
    encoder = damped_square_root_encoder(steps, damping=damping)
    change = float(sum_sensitivity(method.clip_norm, neighbours=budget.neighbours))
    std = float(np.sqrt(encoder @ encoder)) * change / budget.root
    after = np.cumprod(contractions[::-1], axis=0)
    loads = method.step_size * np.concatenate([np.ones_like(after[:1]), after[:-1]])
    # Reversed in time, so that the transposed product is a convolution.
    size = next_fast_len(2 * steps - 1, real=True)
    coefficients = damped_square_root(steps, damping=damping)
    spectrum = rfft(coefficients, size)[:, None] * rfft(loads, size, axis=0)
    loads = np.asarray(irfft(spectrum, size, axis=0))[:steps]
    return np.asarray(std**2 * np.sum(loads**2, axis=0))
