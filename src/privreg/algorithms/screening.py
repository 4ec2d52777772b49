"""Rows that cannot clip: a safe test that lets one Gram matrix stand for almost all of the data.

Along a centre path m_t a row's residual at any θ with ‖θ - m_t‖ ≤ R is at most
max_t |r_i(m_t)| + ‖x_i‖ R. Where that times ‖x_i‖ stays below the clipping bound, the row's
gradient is linear in θ, and the rows of this kind enter through Σ x xᵀ and Σ x y alone. The other
rows are kept and clipped one by one. The sum of clipped gradients is therefore exact inside the
tube, up to the order of summation; outside the tube the caller walks the whole data set.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import isfinite
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from privreg.algorithms.clipped_gradient import (
    LARGEST_PARAMETER,
    WalkedSamples,
    require_clip_norm,
    rescale_samples,
    sum_clipped,
)
from privreg.algorithms.samples import Chunk, Samples, as_samples, moments
from privreg.immutable import Rebuilt, frozen
from privreg.validation import require_frozen, require_number

FloatArray = NDArray[np.float64]
KEPT_SHARE = 0.25
KEPT_NUMBERS = 1 << 24
PILOT_ROWS = 1 << 16
POSITIVE = {"above": 0.0, "infinite": True}


@dataclass(frozen=True)
class ScreenedSamples(Rebuilt):
    """Linear rows as sums, the others as a chunk, valid within `radius` of the centre path.

    `centres` (points, p) is that path by step; its last point stands for all later steps. No row of
    the sums `gram` (p, p), Σ x xᵀ, and `moment` (p,), Σ x y, reaches `clip_norm`; `kept` are the
    other rows. Samples of which a quarter of the rows or 128 MB would have to be kept are refused.
    """

    not_private: ClassVar[bool] = True
    samples: Samples
    centres: FloatArray
    radius: float
    clip_norm: float
    gram: FloatArray = field(init=False, repr=False)
    moment: FloatArray = field(init=False, repr=False)
    kept: Chunk = field(init=False, repr=False)

    def __post_init__(self) -> None:
        samples = as_samples(self.samples)
        limits = {"least": -LARGEST_PARAMETER, "most": LARGEST_PARAMETER}
        shape = (None, samples.dimension)
        centres = require_frozen("centres", self.centres, shape=shape, **limits)
        radius = require_number("radius", self.radius, least=0, most=LARGEST_PARAMETER)
        clip_norm = require_number("clip_norm", self.clip_norm, **POSITIVE)
        clip_norm = float(require_clip_norm(clip_norm))
        sums = _split(samples, centres, radius, clip_norm)
        if sums is None:
            raise ValueError(
                "samples must have more rows that cannot clip within the radius, got too few"
            )
        _set_sums(self, samples, centres, radius, clip_norm, sums)

    def is_of(self, samples: Samples) -> bool:
        """Whether it was these samples that were screened."""
        return samples is self.samples or samples is getattr(self.samples, "samples", None)

    def holds(self, parameters: FloatArray, *, step: int) -> bool:
        """Whether all columns of `parameters` (p, lanes) lie in the tube at this step."""
        centre = self.centres[min(step, len(self.centres) - 1)]
        gap = parameters - centre[:, None]
        return bool(np.max(np.einsum("jl,jl->l", gap, gap)) <= self.radius**2)

    def clipped_gradient_sum(
        self, parameters: FloatArray, *, clip_norm: FloatArray
    ) -> tuple[FloatArray, NDArray[np.int64]]:
        """As `clipped_gradient.clipped_gradient_sum`, at a cost of p² and the kept rows."""
        sums, clipped = sum_clipped(iter([self.kept]), parameters, clip_norm)
        return sums + self.moment[:, None] - self.gram @ parameters, clipped

    def moments(self) -> tuple[FloatArray, FloatArray]:
        """XᵀX, shape (p, p), and Xᵀy, shape (p,), of the whole data set. Not private."""
        features, labels, _ = self.kept
        return self.gram + features.T @ features, self.moment + features.T @ labels


def screen(
    samples: Samples,
    *,
    clip_norm: float,
    step_size: float,
    gradient_noise_std: float,
    steps: int,
    lanes: int,
    start: FloatArray,
) -> ScreenedSamples | None:
    """Screen a data set for gradient descent with Gaussian noise; None where that does not pay.

    The centre path is noiseless, unclipped descent on the first 65,536 rows; the radius covers the
    noise of all lanes and steps with probability 0.999, and what those rows leave unknown of the
    others. Neither choice affects correctness, only how often the caller must fall back to the
    whole data set, which is walked once here. It does not pay where a quarter of the rows or 128 MB
    would have to be kept, or the descent diverges.
    """
    samples = as_samples(samples)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        radius, centres = _tube(
            rescale_samples(samples, np.array([clip_norm])),
            step_size=step_size,
            gradient_noise_std=gradient_noise_std,
            steps=steps,
            lanes=lanes,
            start=start,
        )
    if not (radius <= LARGEST_PARAMETER and np.max(np.abs(centres)) <= LARGEST_PARAMETER):
        return None
    sums = _split(samples, centres, radius, clip_norm)
    if sums is None:
        return None
    screened = object.__new__(ScreenedSamples)
    _set_sums(screened, samples, frozen(centres), radius, clip_norm, sums)
    return screened


def _split(
    samples: Samples, centres: FloatArray, radius: float, clip_norm: float
) -> tuple[FloatArray, FloatArray, Chunk] | None:
    """Sums of the rows that cannot clip within the tube, and the other rows, if they are few."""
    p = samples.dimension
    gram, moment = np.zeros((p, p)), np.zeros(p)
    kept: list[Chunk] = [Chunk(np.empty((0, p)), np.empty(0), np.empty(0))]
    left = min(KEPT_SHARE * samples.sample_size, KEPT_NUMBERS / p)
    chunks = rescale_samples(samples, np.array([clip_norm])).chunks()
    with np.errstate(over="ignore", invalid="ignore"):
        for features, labels, norms in chunks:
            # Centres by rows: the maximum over them then runs along contiguous numbers.
            residual = np.max(np.abs(labels - centres @ features.T), axis=0)
            # The margin covers rounding of the residuals, so that no row is called safe by an ulp.
            longest = norms * (residual + norms * radius) * (1 + 1e-9)
            safe = longest <= clip_norm
            if not np.all(safe):
                risky = ~safe
                kept.append(Chunk(features[risky], labels[risky], norms[risky]))
                left -= np.count_nonzero(risky)
                if left < 0:
                    return None
                features, labels = features[safe], labels[safe]
            gram += features.T @ features
            moment += features.T @ labels
        # No entry of a Gram matrix is larger than its largest on the diagonal.
        if not isfinite(float(gram.trace() + moment.sum())):
            return None
    return gram, moment, Chunk(*(np.concatenate(parts) for parts in zip(*kept, strict=True)))


def _set_sums(
    screened: ScreenedSamples,
    samples: Samples,
    centres: FloatArray,
    radius: float,
    clip_norm: float,
    sums: tuple[FloatArray, FloatArray, Chunk],
) -> None:
    gram, moment, kept = sums
    for name, value in (
        ("samples", samples),
        ("centres", centres),
        ("radius", radius),
        ("clip_norm", clip_norm),
        ("gram", frozen(gram)),
        ("moment", frozen(moment)),
        ("kept", Chunk(*map(frozen, kept))),
    ):
        object.__setattr__(screened, name, value)


def _first_rows(chunks: Iterator[Chunk]) -> Iterator[Chunk]:
    left = PILOT_ROWS
    for features, labels, norms in chunks:
        yield Chunk(features[:left], labels[:left], norms[:left])
        left -= labels.size
        if left <= 0:
            return


def _tube(
    samples: Samples,
    *,
    step_size: float,
    gradient_noise_std: float,
    steps: int,
    lanes: int,
    start: FloatArray,
) -> tuple[float, FloatArray]:
    pilot = samples
    if samples.sample_size > PILOT_ROWS:
        pilot = WalkedSamples(samples, PILOT_ROWS, _first_rows)
    covariance, moment = (total / pilot.sample_size for total in moments(pilot))
    if not (np.all(np.isfinite(covariance)) and np.all(np.isfinite(moment))):
        return np.inf, start[None]
    eigenvalues = np.linalg.eigvalsh(covariance)
    contraction = 1 - step_size * eigenvalues
    powers = np.zeros_like(contraction)
    for _ in range(min(steps, 10_000)):
        powers = 1 + contraction**2 * powers
    variances = (step_size * gradient_noise_std) ** 2 * powers
    # A Gaussian vector's norm exceeds √tr C + √(2 ‖C‖ ln(1/β)) with probability at most β.
    radius = np.sqrt(np.sum(variances)) + np.sqrt(
        2 * np.max(variances) * np.log(1000.0 * steps * lanes)
    )
    centres = [start]
    while len(centres) < min(steps, 500):
        move = step_size * (moment - covariance @ centres[-1])
        centres.append(centres[-1] + move)
        if not np.linalg.norm(move) > 1e-3 * radius:
            break
    path = np.array(centres)
    if pilot.sample_size < samples.sample_size:
        # Twice the sampling error of a least-squares fit to the pilot rows alone.
        square = np.mean(np.concatenate([labels for _, labels, _ in pilot.chunks()]) ** 2)
        radius += 2 * np.sqrt(square * np.sum(1 / np.maximum(eigenvalues, 0)) / pilot.sample_size)
    # Without noise the radius is rounding's alone.
    return float(radius + 1e-9 * np.max(np.linalg.norm(path, axis=1))), path
