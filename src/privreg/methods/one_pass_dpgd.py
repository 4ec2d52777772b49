r"""One-pass DP-GD: runs, and their error predicted by a deterministic equivalent.

.. math:: \dot C_j = n\Big(-2\,\mathbb E[x_j^2\,\eta_x\pi_x]\,C_j + \mathbb E[x_j^2\,\eta_x^2 q_x]
    + 4\gamma^2\sigma_k^2\Big), \qquad \eta_x = \min(\eta_k, 2/\|x\|^2)

Step k has rate η_k, clip norm γ and noise σ_k. C_j is coefficient j's mean squared error. A
residual has variance :math:`\sigma^2 + \sum_j x_j^2 C_j`. Clipped at :math:`\gamma/\|x\|`, it has
unclipped share π_x and second moment q_x. As p grows, the norms concentrate, which gives (4.7) and
(4.8) of bombari2025. At small p, or for heavy tails, the rows' own norms and fourth moments matter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache, partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import exprel

from privreg.algorithms.samples import Samples
from privreg.checks import LEAST, MOST, require_scales
from privreg.methods.clipping import all_clipped_slopes, clipped_rows, slope_shift, squared_shift
from privreg.methods.method import Candidates, Declared, Fit, Method, require_names
from privreg.methods.problem import ErrorMoments, Prediction, Problem, Regime, Rows
from privreg.privacy import release
from privreg.privacy.budget import Budget, Neighbours
from privreg.schedules import Harmonic, Polynomial, Schedule, rate, require_schedule
from privreg.theory.one_pass_dpgd.deterministic_equivalent import geometric_ends

FloatArray = NDArray[np.float64]
PANELS_PER_DECADE = 10
# Derived in `_regime`.
LONGEST_STEP, CONCENTRATED = 0.3, 20
# Schedules that a plan compares: a function of the rate and the time scale, and time scales.
SHAPES: dict[str, tuple[Callable[[float, float], Schedule], tuple[float, ...]]] = {
    "harmonic": (Harmonic, (1.0, 4.0, 20.0)),
    "constant": (lambda rate, _: Polynomial(rate, 0.0), (1.0,)),
    "root": (lambda rate, _: Polynomial(rate, 0.5), (1.0,)),
    "linear": (lambda rate, _: Polynomial(rate, 1.0), (1.0,)),
}


@dataclass(frozen=True)
class OnePassDPGD(Method):
    """One-pass DP-GD; only the last iterate is released.

    Parameters
    ----------
    schedule : Schedule
        Learning-rate curve η̃ with one amplitude; step k of n has rate η̃(k/n) / n.
    clip_constant : float
        Clip norm of a gradient, divided by √p for p features.

    Guarantee
    ---------
    Releasing the last iterate alone spends the budget: `privreg.algorithms.one_pass_dpgd.fit` with
    the noise of `Mechanism.from_schedule`.

    Examples
    --------
    >>> problem = Problem(10_000, [1.0] * 10, signal=1.0, label_noise_std=1.0)
    >>> method = OnePassDPGD(Harmonic(1.6, 0.03), clip_constant=0.8)
    >>> print(method)
    rate 1.6/(t + 0.03), clip constant 0.8
    >>> method.predict(problem, Budget.zcdp(0.5)).holds
    True

    Source
    ------
    bombari2025, Algorithm 1 and Proposition 4.1; equations (4.7)-(4.8) for the prediction.
    """

    name: ClassVar[str] = "one_pass"
    relations: ClassVar[frozenset[Neighbours]] = frozenset({Neighbours.REPLACE_ONE})
    assumptions: ClassVar[tuple[str, ...]] = (*release.BESIDES_THE_STREAM, release.LAST_ALONE)
    schedule: Schedule
    clip_constant: float

    def __post_init__(self) -> None:
        amplitude = np.asarray(require_schedule(self.schedule).amplitude)
        if amplitude.size != 1:
            raise ValueError(f"schedule must have one amplitude, got {amplitude.size}")
        require_scales(schedule=amplitude.item(), clip_constant=self.clip_constant)

    @classmethod
    def searched(cls) -> tuple[str, ...]:
        """Names under which a plan lists its results, one for each shape of the schedule."""
        return tuple(f"{cls.name}_{shape}" for shape in SHAPES)

    @classmethod
    def candidates(
        cls, problem: Problem, budget: Budget, *, intervals: bool = True
    ) -> list[Candidates[Self]]:
        n, p = problem.sample_size, problem.dimension
        mean = float(problem.eigenvalues.mean())
        ratio = p / n
        natural = max(ratio, ratio / budget.root)
        unit = problem.label_noise_std * np.sqrt(mean)

        def settings(point: Sequence[float], shape: Callable[[float, float], Schedule]) -> Any:
            initial, clip, offset = np.exp(point)
            # The amplitude gives the rate at the start, in units of the inverse eigenvalue.
            scales = [float(initial) / mean, float(offset) * natural, float(clip) * unit]
            amplitude, time, constant = np.clip(scales, LEAST, MOST).tolist()
            return cls(shape(amplitude, time), constant)

        found = []
        for name, (shape, scales) in zip(cls.searched(), SHAPES.values(), strict=True):
            grids = (
                np.log(np.geomspace(0.7, 12, 6)),
                np.log([0.2, 0.5, 1.2, 3]),
                np.log(np.asarray(scales)),
            )
            of_shape = partial(settings, shape=shape)
            found.append(Candidates.zoomed(name, of_shape, grids, zooms=4, clip="clip_constant"))
        return found

    @classmethod
    def from_numbers(cls, values: Mapping[str, float], problem: Problem, budget: Budget) -> Self:
        """Create settings from the clip and the numbers of a harmonic or polynomial schedule."""
        curve: Any = Harmonic if "offset" in values else Polynomial
        shape = [each.name for each in fields(curve)]
        known = [*shape, "clip_constant"]
        require_names(values, known, needed=known)
        return cls(curve(*(values[each] for each in shape)), values["clip_constant"])

    def __str__(self) -> str:
        return f"rate {self.schedule}, clip constant {self.clip_constant:.3g}"

    def _prepare(
        self, samples: Samples, budget: Budget, declared: Declared
    ) -> Callable[[np.random.Generator], Fit]:
        from privreg.algorithms import one_pass_dpgd

        mechanism = one_pass_dpgd.Mechanism.from_schedule(
            self.schedule,
            sample_size=samples.sample_size,
            dimension=samples.dimension,
            budget=budget,
            clip_constant=self.clip_constant,
        )

        @cache
        def rows() -> list[FloatArray]:
            chunks = [(chunk.features, chunk.labels) for chunk in samples.chunks()]
            return [np.concatenate(parts) for parts in zip(*chunks, strict=True)]

        def fit(rng: np.random.Generator) -> Fit:
            features, labels = rows()
            iterates = one_pass_dpgd.fit(mechanism, features, labels, rng)
            return Fit(iterates, (("the pass", budget),))

        return fit

    @classmethod
    def _predict(
        cls, settings: Sequence[Self], problem: Problem, rows: Rows, budget: Budget
    ) -> Callable[[Problem], list[Prediction]]:
        moments = _follow(problem, rows, settings, budget)
        return lambda each: [
            _regime(each, rows, method, found)
            for method, found in zip(settings, moments.predictions(each, rows), strict=True)
        ]


def _regime(problem: Problem, rows: Rows, method: OnePassDPGD, found: Prediction) -> Prediction:
    r"""Regime of one-pass DP-GD (bombari2025, Theorem 1 and Algorithm 1).

    On average, the first step is not capped at 2/‖x‖² if η tr Σ / 2 ≤ 1. The differential equation
    uses exp(-a) for a step's contraction 1 - a. Along a coordinate a = 2ηλ - η² E x⁴. At η E x⁴ / λ
    = `LONGEST_STEP`, a = 0.17 if E x⁴ = 3λ²; there -ln(1 - a) is 10 % larger than a. ‖x‖/√p has
    variance 1/(2p) for Gaussian rows, 2.5 % at p = `CONCENTRATED`; means change by half of this.
    """
    if not found.holds:
        return found
    step = rate(method.schedule, 0.0).item() / problem.sample_size
    if step * float(problem.eigenvalues.sum()) / 2 > 1:
        return found.with_doubt("the first steps exceed their cap, 2 / (norm of the row)²")
    # A row moves the error along a coordinate by this share, on average over its energy.
    fourth = rows.weights @ rows.energies**2 / (rows.multiplicities**2 * rows.eigenvalues)
    if step * float(fourth.max()) > LONGEST_STEP:
        return found.with_doubt("a single row moves the error too far along a coordinate")
    if problem.feature_law == "gaussian" and problem.dimension >= CONCENTRATED:
        return found.marked(Regime.PROVEN, "deterministic equivalent, Gaussian rows")
    return found.marked(Regime.EXTENDED, "deterministic equivalent with the rows' own norms")


def _follow(
    problem: Problem, rows: Rows, methods: Sequence[OnePassDPGD], budget: Budget
) -> ErrorMoments:
    """Moments of the error of the last iterates, including the noise of the last step."""
    n = problem.sample_size
    times = geometric_ends(1 / n, 1 / n, panels=PANELS_PER_DECADE)
    rates = np.array([rate(each.schedule, times).ravel() for each in methods])
    clip = np.sqrt(problem.dimension) * np.array([each.clip_constant for each in methods])
    widths = clip[:, None] / rows.norms
    noise = (2 * clip / budget.root)[:, None] ** 2 * rates**2 / n**2
    whole = np.ones((len(methods), len(rows.eigenvalues)))
    state, cap, of_rows = (whole, 0 * whole), 2 / rows.norms**2, clipped_rows(problem, rows)
    every = np.ones(len(methods), dtype=bool)

    def slopes(at: int, bias: FloatArray, variance: FloatArray) -> FloatArray:
        taken, squares = np.minimum(rates[:, at, None] / n, cap), bias**2 * rows.squared_signal
        found = np.empty((len(methods), 3, whole.shape[1]))
        all_clipped_slopes(of_rows, every, widths, taken, squares, variance, found)
        return found

    for at, count in enumerate(n * np.diff(times)):
        # Per step and per time the noise is known exactly.
        moved = partial(
            _relaxed, *state, count=count, kick=(noise[:, at] - noise[:, at + 1])[:, None]
        )
        # An exponential step of Heun, as that of the deterministic equivalent.
        first = slopes(at, *state)
        second = slopes(at + 1, *moved(first))
        state = moved((first + second) / 2)
    bias, variance = state
    shift = squared_shift(problem, rows, widths, covered=1 - bias)
    changed = slope_shift(problem, rows, widths)
    return ErrorMoments(bias**2 * rows.squared_signal, variance + noise[:, -1:], shift, changed)


def _relaxed(
    bias: FloatArray, variance: FloatArray, slopes: FloatArray, *, count: float, kick: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Remaining share of the signal, and variance, after `count` steps with constant slopes."""
    drift, share, square = np.swapaxes(slopes, 0, 1)
    passed = 2 * share * count
    gained = (square * count + kick) * exprel(-passed)
    return bias * np.exp(-drift * count), variance * np.exp(-passed) + gained
