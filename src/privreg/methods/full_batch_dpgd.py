r"""Full-batch DP-GD with clipped gradients: runs, and their predicted error.

Around θ*, let ψ be a residual r clipped to [-w, w]. Curvature and second moment are

.. math:: A = \mathbb E[xx^\top 1\{|r| \le w\}],\qquad B = \mathbb E[xx^\top\psi^2],\qquad
    w = \gamma/\|x\|.

Along an eigenvector, let the sample's curvature be h times the population's. The bias c, the
sampling error f and the variance v from private noise of standard deviation λ follow

.. math:: c \leftarrow a\,c,\quad f \leftarrow (1 - \eta A) f + \eta\sqrt{B/n},\quad
    v \leftarrow a^2 v + \eta^2\lambda^2, \qquad a = 1 - \eta A h.

A depends on the size of the residuals at each step: far from θ* more residuals are clipped. This
size excludes f, since residuals are taken at the sample's own minimiser. `sampling_inflation` gives
the growth of f at finite p/n.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numba import njit
from numpy.typing import NDArray

from privreg.algorithms.full_batch_dpgd import exact_descent, full_batch_dpgd, full_batch_noise_std
from privreg.algorithms.samples import Samples
from privreg.checks import LEAST, MOST, require_count, require_real, require_scales
from privreg.methods.clipping import (
    ClippedRows,
    clipped_rows,
    clipped_slopes,
    count_nodes,
    finite,
    noise_moments,
    sample_nodes,
    sampling_inflation,
    slope_shift,
    squared_shift,
)
from privreg.methods.method import NOTHING, Candidates, Declared, Fit, Method
from privreg.methods.problem import ErrorMoments, Prediction, Problem, Regime, Rows, too_few_rows
from privreg.privacy.budget import Budget, Neighbours, shared_sample_size

FloatArray = NDArray[np.float64]
# Derived in `_regime`.
MOST_REACH, LEAST_UNCLIPPED, ALL_UNCLIPPED = 1.75, 0.25, 0.999


@dataclass(frozen=True)
class FullBatchDPGD(Method):
    """Full-batch DP-GD; the last iterate is the estimate, and the budget covers all iterates.

    Parameters
    ----------
    steps : int
        Number of steps T, at least 1.
    step_size, clip_norm : float
        Step size η, and norm γ to which gradients are clipped.

    Guarantee
    ---------
    Releasing all iterates spends the budget (`full_batch_dpgd`, with `full_batch_noise_std`).

    Examples
    --------
    >>> problem = Problem(10_000, [1.0] * 10, signal=1.0, label_noise_std=1.0)
    >>> method = FullBatchDPGD(steps=20, step_size=0.5, clip_norm=8.0)
    >>> found = method.predict(problem, Budget.zcdp(0.5))
    >>> round(found.excess_risk, 5), str(found.regime)
    (0.00059, 'extended')

    Source
    ------
    brown2024, Algorithm 1 and Lemma 2.3.
    """

    name: ClassVar[str] = "full_batch"
    relations: ClassVar[frozenset[Neighbours]] = frozenset(Neighbours)
    takes_weights: ClassVar[bool] = True
    gaussian_dp: ClassVar[bool] = True
    is_exact: ClassVar[bool] = True
    steps: int
    step_size: float
    clip_norm: float

    def __post_init__(self) -> None:
        require_count("steps", self.steps)
        require_scales(step_size=self.step_size, clip_norm=self.clip_norm)

    @classmethod
    def candidates(
        cls, problem: Problem, budget: Budget, *, intervals: bool = True
    ) -> list[Candidates[Self]]:
        length = float(np.sqrt(problem.eigenvalues.sum()))
        unit = problem.label_noise_std * length
        largest = float(problem.eigenvalues.max())

        def settings(point: Sequence[float]) -> Any:
            steps, size, clip = np.exp(point)
            scales = np.clip([float(size) / largest, float(clip) * unit], LEAST, MOST)
            return cls(max(1, round(float(steps))), *scales.tolist())

        grids = (np.log([4, 9, 20, 45]), np.log([0.4, 0.8, 1.5]), np.log([0.35, 0.8, 1.8, 4]))
        return [Candidates.zoomed(cls.name, settings, grids, zooms=5, clip="clip_norm")]

    def simulate(
        self,
        samples: Samples,
        budget: Budget,
        rng: np.random.Generator,
        *,
        declared: Declared = NOTHING,
        runs: int = 1,
    ) -> FloatArray:
        """Estimates of several runs, as in `Method.simulate`; runs share passes over the rows."""
        samples = self._checked(samples, budget, declared)
        options = self._options(samples, budget, declared)
        found = full_batch_dpgd(samples, **options, rng=rng, runs=runs, times=[self.steps])
        return found.iterates[:, 0]

    def _prepare(
        self, samples: Samples, budget: Budget, declared: Declared
    ) -> Callable[[np.random.Generator | None], Fit]:
        options = self._options(samples, budget, declared)

        def fit(rng: np.random.Generator | None) -> Fit:
            if rng is None:
                iterates = exact_descent(samples, budget, n=options["sample_size"], **asdict(self))
            else:
                iterates = full_batch_dpgd(samples, **options, rng=rng).iterates[0]
            return Fit(iterates, (("steps", budget),))

        return fit

    def _options(self, samples: Samples, budget: Budget, declared: Declared) -> dict[str, Any]:
        size = shared_sample_size(
            declared.sample_size, records=samples.sample_size, neighbours=budget.neighbours
        )
        noise = full_batch_noise_std(
            clip_norm=self.clip_norm,
            rho=budget.rho,
            sample_size=size,
            gradients=self.steps,
            neighbours=budget.neighbours,
        )
        return {
            "clip_norm": self.clip_norm,
            "step_size": self.step_size,
            "gradient_noise_std": require_real("gradient_noise_std", noise, most=MOST),
            "steps": self.steps,
            "screening": False,
            "sample_size": size,
        }

    @classmethod
    def _predict(
        cls, settings: Sequence[Self], problem: Problem, rows: Rows, budget: Budget
    ) -> Callable[[Problem], list[Prediction]]:
        moments, *ends = _follow(problem, rows, settings, budget)
        return lambda each: [
            _regime(each, *of_one)
            for of_one in zip(moments.predictions(each, rows), *ends, strict=True)
        ]


def _regime(problem: Problem, found: Prediction, unclipped: float, reach: float) -> Prediction:
    r"""Regime of clipped full-batch descent (brown2024, Lemma 2.3, where nothing is clipped).

    Noise settles at a variance proportional to 1/(r(2 - r)), where `reach` r is the largest product
    of step size and curvature. At `MOST_REACH`, an error of 2 % in the curvature changes the
    variance by the stated 10 %. A clip of u residual scales leaves the share s = P(|ξ| ≤ u)
    `unclipped`. The curvature's elasticity in the scale, -2uφ(u)/s, is -0.97 at `LEAST_UNCLIPPED`;
    the pull to θ* then hardly grows with the error.
    """
    if not found.holds:
        return found
    if reach > MOST_REACH:
        return found.with_doubt(f"step size times curvature is {reach:.2f}, above {MOST_REACH}")
    few = too_few_rows(problem, unclipped)
    if few is not None:
        return found.with_doubt(few)
    if unclipped < LEAST_UNCLIPPED:
        return found.with_doubt(f"heavy clipping of {100 * (1 - unclipped):.0f} % of gradients")
    if unclipped > ALL_UNCLIPPED:
        return found.marked(Regime.PROVEN, "nothing is clipped: the law of noisy descent is exact")
    return found.expanded(unclipped)


class _Curvatures(NamedTuple):
    """Relative curvature h of a sample, (settings, groups or 1, nodes), and its weights."""

    nodes: FloatArray
    weights: FloatArray

    def mean(self, values: FloatArray) -> FloatArray:
        return np.sum(values * self.weights, axis=-1)


def _follow(
    problem: Problem, rows: Rows, methods: Sequence[FullBatchDPGD], budget: Budget
) -> tuple[ErrorMoments, FloatArray, FloatArray]:
    """Error moments of descents from zero, and `_regime`'s `unclipped` and `reach`, (settings,)."""
    n, sigma = problem.sample_size, problem.label_noise_std
    steps, sizes, clips = (
        np.array([getattr(each, name) for each in methods])
        for name in ("steps", "step_size", "clip_norm")
    )
    noise = full_batch_noise_std(
        clip_norm=clips,
        rho=budget.rho,
        sample_size=n,
        gradients=steps,
        neighbours=budget.neighbours,
    )
    widths = clips[:, None] / rows.norms
    settled, square = noise_moments(widths, label_noise_std=sigma, law=problem.label_noise_law)
    unclipped = settled @ rows.weights
    curvatures = _curvatures(problem, rows, unclipped)
    source = np.sqrt(rows.per_coordinate(square) / n)
    bias = np.ones((len(methods), len(source[0]), curvatures.nodes.shape[-1]))
    private, sampling = np.zeros_like(bias), np.zeros_like(source)
    reach = np.zeros(len(methods))
    _descend(
        clipped_rows(problem, rows),
        widths,
        steps,
        sizes,
        noise,
        *curvatures,
        rows.squared_signal,
        source,
        bias,
        private,
        sampling,
        unclipped,
        reach,
    )
    spread = curvatures.mean(private)
    inflation = _inflation(problem, rows, widths, spread)
    moved = squared_shift(problem, rows, widths, covered=1 - curvatures.mean(bias))
    squared_bias = curvatures.mean(bias**2) * rows.squared_signal
    changed = slope_shift(problem, rows, widths)
    moments = ErrorMoments(squared_bias, inflation * sampling**2 + spread, moved, changed)
    return moments, unclipped, reach


@njit(nogil=True, cache=True, error_model="numpy")
def _descend(
    rows: ClippedRows,
    widths: FloatArray,
    steps: NDArray[np.int64],
    sizes: FloatArray,
    noise: FloatArray,
    nodes: FloatArray,
    weights: FloatArray,
    signal: FloatArray,
    source: FloatArray,
    bias: FloatArray,
    private: FloatArray,
    sampling: FloatArray,
    unclipped: FloatArray,
    reach: FloatArray,
) -> None:
    """Take all steps of all settings, in place in the last five arrays."""
    groups = len(signal)
    squared_bias, variance = np.empty(groups), np.empty(groups)
    factors, slopes = np.ones(widths.shape[1]), np.empty((3, groups))
    for at in range(len(steps)):
        size = sizes[at]
        for _ in range(steps[at]):
            for group in range(groups):
                square, spread = 0.0, 0.0
                for node in range(nodes.shape[2]):
                    weight = weights[at, min(group, weights.shape[1] - 1), node]
                    square += bias[at, group, node] ** 2 * weight
                    spread += private[at, group, node] * weight
                squared_bias[group], variance[group] = square * signal[group], spread
            unclipped[at] = clipped_slopes(
                rows, widths[at], factors, squared_bias, variance, slopes
            )
            reach[at] = 0.0
            for group in range(groups):
                drift, pull = size * slopes[0, group], size * slopes[1, group]
                for node in range(nodes.shape[2]):
                    each = nodes[at, min(group, nodes.shape[1] - 1), node]
                    taken = pull * each
                    reach[at] = max(reach[at], taken)
                    bias[at, group, node] *= 1 - drift * each
                    private[at, group, node] *= (1 - taken) ** 2
                    private[at, group, node] += (size * noise[at]) ** 2
                sampling[at, group] = (1 - pull) * sampling[at, group] + size * source[at, group]


def _curvatures(problem: Problem, rows: Rows, unclipped: FloatArray) -> _Curvatures:
    n = problem.sample_size
    if problem.feature_law == "one_hot":
        counts = [count_nodes(rows.eigenvalues * share, n) for share in unclipped]
        nodes = np.array([pair[0] for pair in counts])
        return _Curvatures(nodes, np.array(np.broadcast_to(counts[0][1], nodes.shape)))
    ratios = problem.dimension / n / np.maximum(unclipped, 1e-9)
    found = [sample_nodes(float(min(ratio, 0.9))) for ratio in ratios]
    return _Curvatures(*(np.array([pair[at] for pair in found])[:, None] for at in (0, 1)))


def _inflation(problem: Problem, rows: Rows, widths: FloatArray, private: FloatArray) -> FloatArray:
    """Factor of the sampling variance, shape (settings, groups or 1)."""
    if problem.feature_law == "one_hot":
        # Each category is a sample of its own size.
        nodes, weights = count_nodes(rows.eigenvalues, problem.sample_size)
        return np.broadcast_to((1 / np.maximum(nodes, 1e-2)) @ weights, private.shape)
    ratio = problem.dimension / problem.sample_size
    other = finite(rows.total(rows.eigenvalues * private))
    return sampling_inflation(
        widths,
        rows.weights,
        ratio=ratio,
        label_noise_std=problem.label_noise_std,
        law=problem.label_noise_law,
        other_variance=other,
    )[:, None]
