"""Confidence intervals from the iterates of private gradient descent.

Each construction turns iterates into m replicates, weighted sums of them, and treats the replicates
as a sample: its mean gives the centre, its spread the half-width, with Student's t on m - 1 degrees
of freedom. Everything is post-processing of released iterates and costs no privacy. The target is
the *empirical minimiser*, least squares on the same data, not the population parameter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

from privreg.validation import (
    require_answer,
    require_array,
    require_broadcast,
    require_choice,
    require_count,
    require_number,
    require_real,
)

FloatArray = NDArray[np.float64]
Construction = Literal["batch_means", "checkpoints", "independent_runs"]
CONSTRUCTIONS: tuple[Construction, ...] = get_args(Construction)


@dataclass(frozen=True)
class Interval:
    """Two-sided intervals, centre ± half-width, one for each coordinate.

    Attributes
    ----------
    centre, half_width : ndarray, shape (..., p)
    degrees_of_freedom : int
        Of Student's t.
    level : float
        Nominal coverage of the empirical minimiser.
    """

    centre: FloatArray
    half_width: FloatArray
    degrees_of_freedom: int
    level: float

    def covers(self, target: ArrayLike) -> NDArray[np.bool_]:
        """Whether each interval contains the finite target, shape (..., p)."""
        point = require_real("target", target)
        require_broadcast(target=point, centre=self.centre)
        with np.errstate(over="ignore"):
            return np.abs(self.centre - point) <= self.half_width

    @property
    def length(self) -> FloatArray:
        """Full length, shape (..., p)."""
        return 2 * self.half_width


def replicate_interval(replicates: ArrayLike, *, level: float) -> Interval:
    r"""Student's interval from replicates.

    .. math::
        \bar\theta_j \pm t_{(1+\ell)/2,\,m-1}\,\hat\sigma_j/\sqrt m, \qquad
        \hat\sigma_j^2 = \frac1{m-1}\sum_{l=1}^m(\theta_j^{(l)} - \bar\theta_j)^2

    Parameters
    ----------
    replicates : array_like, shape (..., m, p)
        θ^(l), two or more.
    level : float
        ℓ in (0, 1).

    Returns
    -------
    Interval
        Exact for independent, identically distributed Gaussian replicates with mean θ̂_j.

    Source
    ------
    brown2024, equation (12), with t the *upper* quantile; the paper calls it the α-th percentile.

    Examples
    --------
    >>> found = replicate_interval([[1.0], [2.0], [3.0]], level=0.95)
    >>> found.centre.tolist(), found.half_width.round(3).tolist()
    ([2.0], [2.484])
    """
    sample = require_array("replicates", replicates, shape=(..., None, None))
    if sample.shape[-2] < 2:
        raise ValueError(f"replicates must have shape (..., m, p) with m >= 2, got {sample.shape}")
    return _interval("replicates", sample, level)


def _interval(name: str, sample: FloatArray, level: float) -> Interval:
    count = sample.shape[-2]
    scale = t_quantile(count, level=level) / np.sqrt(count)
    with np.errstate(over="ignore", invalid="ignore"):
        centre, spread = sample.mean(axis=-2), scale * sample.std(axis=-2, ddof=1)
    return Interval(
        centre=require_answer(name, centre),
        half_width=require_answer(name, spread),
        degrees_of_freedom=count - 1,
        level=level,
    )


def independent_runs(iterates: ArrayLike, *, level: float, burn_in: int = 20) -> Interval:
    """Interval from m independent runs: each run's average after the burn-in is a replicate.

    Parameters
    ----------
    iterates : array_like, shape (..., m, T, p)
        θ_1..θ_T of each run, T more than `burn_in`. The runs' noise must be scaled for all m T
        gradients.
    level : float
        Nominal coverage in (0, 1).
    burn_in : int
        First iterates of every run left out; T - 1 keeps the final iterate alone.

    Returns
    -------
    Interval
        For the empirical minimiser, arrays (..., p).

    Source
    ------
    brown2024, section 3 (final iterates) and section 4.2 (averages after 20 iterates).
    """
    runs = require_array("iterates", iterates, shape=(..., None, None, None))
    if runs.shape[-3] < 2:
        raise ValueError(f"iterates must have shape (..., m, T, p) with m >= 2, got {runs.shape}")
    weights = average_weights(runs.shape[-2], burn_in=burn_in)
    return _from_iterates(weights, runs, level, squeeze=True)


def checkpoints(
    iterates: ArrayLike, *, level: float, replicates: int = 10, burn_in: int = 20
) -> Interval:
    """Interval from equally spaced iterates of one run, burn_in + l L with L = ⌊(N - burn_in)/m⌋.

    Parameters
    ----------
    iterates, level, replicates, burn_in
        As for `batch_means`.

    Returns
    -------
    Interval
        For the empirical minimiser, arrays (..., p).

    Source
    ------
    brown2024, section 3, equation (87).
    """
    path = require_array("iterates", iterates, shape=(..., None, None))
    weights = checkpoint_weights(path.shape[-2], replicates=replicates, burn_in=burn_in)
    return _from_iterates(weights, path, level)


def batch_means(
    iterates: ArrayLike, *, level: float, replicates: int = 10, burn_in: int = 20
) -> Interval:
    """Interval from the averages of consecutive blocks of one run.

    Parameters
    ----------
    iterates : array_like, shape (..., N, p)
        θ_1..θ_N.
    level : float
        Nominal coverage in (0, 1). Neighbouring blocks are correlated, so the actual coverage is
        below it for short blocks: `coverage.t_interval_coverage` says by how much.
    replicates : int
        m, at least 2.
    burn_in : int
        First iterates left out; block l is the L iterates after burn_in + (l - 1) L.

    Returns
    -------
    Interval
        For the empirical minimiser, arrays (..., p).

    Source
    ------
    brown2024, section 3 (no formal guarantee is claimed) and section 4.2.
    """
    path = require_array("iterates", iterates, shape=(..., None, None))
    weights = batch_mean_weights(path.shape[-2], replicates=replicates, burn_in=burn_in)
    return _from_iterates(weights, path, level)


def average_weights(steps: int, *, burn_in: int = 20) -> FloatArray:
    """Weights (1, T) of the average of the iterates after the burn-in."""
    steps, burn_in = require_count("steps", steps), require_count("burn_in", burn_in, least=0)
    if burn_in >= steps:
        raise ValueError(f"burn_in must be at least 0 and less than {steps}, got {burn_in}")
    weights = np.zeros((1, steps))
    weights[0, burn_in:] = 1 / (steps - burn_in)
    return weights


def checkpoint_weights(steps: int, *, replicates: int = 10, burn_in: int = 20) -> FloatArray:
    """Weights (m, N) that pick the last iterate of each block."""
    block = _block_length(steps, replicates, burn_in)
    weights = np.zeros((replicates, steps))
    order = np.arange(replicates)
    weights[order, burn_in + (order + 1) * block - 1] = 1
    return weights


def batch_mean_weights(steps: int, *, replicates: int = 10, burn_in: int = 20) -> FloatArray:
    """Weights (m, N) that average each block."""
    block = _block_length(steps, replicates, burn_in)
    weights = np.zeros((replicates, steps))
    used = slice(burn_in, burn_in + replicates * block)
    weights[:, used] = np.kron(np.eye(replicates), np.full(block, 1 / block))
    return weights


def replicate_weights(
    construction: Construction, *, gradients: int, replicates: int = 10, burn_in: int = 20
) -> FloatArray:
    """Weights (m, N) of a path's iterates in its replicates, as for `quality.interval_quality`.

    For "independent_runs" the shape is (1, ⌊N / m⌋): one run makes one replicate.
    """
    require_choice("construction", construction, CONSTRUCTIONS)
    count = require_count("gradients", gradients)
    if construction == "independent_runs":
        each = count // require_count("replicates", replicates, least=2)
        if each <= burn_in:
            raise ValueError(
                f"gradients must be at least {replicates * (burn_in + 1)} for {replicates} runs "
                f"longer than a burn-in of {burn_in}, got {count}"
            )
        return average_weights(each, burn_in=burn_in)
    make = batch_mean_weights if construction == "batch_means" else checkpoint_weights
    return make(count, replicates=replicates, burn_in=burn_in)


def t_quantile(replicates: int, *, level: float) -> float:
    """Upper (1 + level)/2 quantile of Student's t on m - 1 degrees of freedom."""
    level = require_number("level", level, above=0, below=1)
    return float(stdtrit(replicates - 1, (1 + level) / 2))


def _block_length(steps: int, replicates: int, burn_in: int) -> int:
    steps, burn_in = require_count("steps", steps), require_count("burn_in", burn_in, least=0)
    replicates = require_count("replicates", replicates, least=2)
    block = (steps - burn_in) // replicates
    if block < 1:
        raise ValueError(
            f"burn_in must be at most {steps - replicates} for {replicates} replicates of "
            f"{steps} iterates, got {burn_in}"
        )
    return block


def _from_iterates(
    weights: FloatArray, path: FloatArray, level: float, *, squeeze: bool = False
) -> Interval:
    with np.errstate(over="ignore", invalid="ignore"):
        sample = weights @ path
    return _interval("iterates", sample[..., 0, :] if squeeze else sample, level)
