"""Shape, correlation and clip of a run of DP-FTRL with shaped noise, with its budget."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isinf

import numpy as np

from privreg.algorithms.clipped_gradient import require_clip_norm
from privreg.algorithms.shaped_accounting import shaped_budget, shaped_noise_multiplier
from privreg.immutable import Immutable, Rebuilt
from privreg.noise.correlations import Correlation
from privreg.noise.covariance import NoiseCovariance
from privreg.privacy.budget import Budget
from privreg.privacy.neighbours import Neighbours
from privreg.ranges import short
from privreg.validation import (
    FloatArray,
    require_array,
    require_count,
    require_frozen,
    require_instance,
    require_number,
)

# Steps, norms and noise up to here stay far from overflow in every product.
LARGEST = 1e50


@dataclass(frozen=True)
class FixedClip:
    """Clipping at one norm ψ, chosen without looking at the private rows.

    Parameters
    ----------
    clip_norm : float
        ψ in the norm of Σ⁻¹, at least 1e-50 and at most 1e50; or `inf`, which clips nothing.
    """

    clip_norm: float

    def __post_init__(self) -> None:
        require_number("clip_norm", self.clip_norm, above=0, infinite=True)
        object.__setattr__(self, "clip_norm", float(require_clip_norm(self.clip_norm)))


@dataclass(frozen=True, eq=False)
class ResidualClip(Immutable):
    r"""Clipping at ψ_t = C l_t, where l_t estimates the current residuals from public rows.

    Noise takes the largest ψ so far. The loop feeds back: more noise makes larger residuals, which
    make a larger ψ, and beyond a step size of about 1/(τC√(tr(HΣ) log₂N)) it runs away.

    Parameters
    ----------
    per_residual : float
        C, at least 1e-50 and at most 1e50: a bound on the inverse norm of a feature vector.
    features : array_like, shape (m, d)
        At least -1e50 and at most 1e50.
    labels : array_like, shape (m,)
        At least -1e50 and at most 1e50: public rows with labels, which nothing hides.

    Source
    ------
    anon2024, Algorithm 1, lines 4 to 7, and Algorithm 2, Option 1.
    """

    per_residual: float
    features: FloatArray
    labels: FloatArray

    def __post_init__(self) -> None:
        within = {"least": -LARGEST, "most": LARGEST}
        require_number("per_residual", self.per_residual, least=1 / LARGEST, most=LARGEST)
        features = require_array("features", self.features, shape=(None, None), **within)
        labels = require_array("labels", self.labels, shape=(len(features),), **within)
        for name, array in {"features": features, "labels": labels}.items():
            object.__setattr__(self, name, require_frozen(name, array, shape=array.shape))

    def clip_norm(self, parameters: FloatArray) -> float:
        """C l for the current parameters; `inf` where double precision does not hold it.

        Parameters
        ----------
        parameters : array_like, shape (d,)
            Not finite gives `inf`.
        """
        shape = (self.features.shape[1],)
        point = require_array("parameters", parameters, shape=shape, infinite=True)
        return self._scale(point)

    def _scale(self, parameters: FloatArray) -> float:
        """The same for numbers that a run has made, which may be NaN."""
        with np.errstate(over="ignore", invalid="ignore"):
            residuals = self.features @ parameters - self.labels
            scale = self.per_residual * float(np.sqrt(2.0 * np.mean(residuals**2)))
        return scale if np.isfinite(scale) else inf


@dataclass(frozen=True, eq=False)
class ShapedMechanism(Rebuilt):
    r"""Everything that decides the privacy of a run, and nothing else.

    Parameters
    ----------
    covariance : NoiseCovariance
        Σ, made without the private rows.
    correlation : Correlation
        Of the noise over the steps: the tree, independent, or the damped square root.
    clipping : FixedClip or ResidualClip
        Where gradients are clipped.
    noise_multiplier : float
        τ: noise over clip norm, both in the norm of Σ⁻¹, from 1e-50 and at most 1e50; or 0, which
        adds none and promises nothing.
    sample_size : int
        Number N of rows, public; at least 2. The last row enters no released iterate.

    Guarantee
    ---------
    The iterates w_0, ..., w_{N-1} together, and so their average, are ρ-zCDP with ρ = `spent`,
    for replace-one neighbours by default. It is computed from the noise that is added: N - 1
    gradients, and for the tree only the nodes that enter a prefix. Rows used by `ResidualClip`
    and by Σ are public and not covered.

    Source
    ------
    anon2024, Algorithm 1; the accounting is that of `shaped_budget`, since the constant of its
    Theorem 4.1 covers zero-out but not replace-one neighbours.
    """

    covariance: NoiseCovariance
    correlation: Correlation
    clipping: FixedClip | ResidualClip
    noise_multiplier: float
    sample_size: int

    def __post_init__(self) -> None:
        require_count("sample_size", self.sample_size, least=2)
        require_instance("covariance", self.covariance, NoiseCovariance)  # type: ignore[type-abstract]
        require_instance("correlation", self.correlation, Correlation)  # type: ignore[type-abstract]
        multiplier = require_number(
            "noise_multiplier", self.noise_multiplier, least=0, most=LARGEST
        )
        if 0 < multiplier < 1 / LARGEST:
            raise ValueError(
                f"noise_multiplier must be 0 or at least {1 / LARGEST:g}, got {multiplier}"
            )
        object.__setattr__(self, "noise_multiplier", multiplier)
        if not isinstance(self.clipping, (FixedClip, ResidualClip)):
            raise ValueError(
                f"clipping must be a FixedClip or a ResidualClip, got {short(self.clipping)}"
            )
        if isinstance(self.clipping, FixedClip):
            if isinf(self.clipping.clip_norm) and multiplier > 0:
                raise ValueError("clip_norm must be finite where noise is added, got inf")
        elif self.correlation.increment_terms(1) is None:
            raise ValueError(
                "clipping must be FixedClip where noise is correlated over all steps, "
                "got ResidualClip: its scale would change inside the correlation"
            )
        elif self.clipping.features.shape[1] != self.covariance.dimension:
            raise ValueError(
                f"features of the clipping must have {self.covariance.dimension} columns, "
                f"got {self.clipping.features.shape[1]}"
            )

    @classmethod
    def for_budget(
        cls,
        budget: Budget,
        *,
        covariance: NoiseCovariance,
        correlation: Correlation,
        clipping: FixedClip | ResidualClip,
        sample_size: int,
    ) -> ShapedMechanism:
        """The least noise at which all iterates together keep a budget.

        Parameters
        ----------
        budget : Budget
            For replace-one or zero-out neighbours.
        covariance, correlation, clipping, sample_size
            Those of the class.
        """
        steps = require_count("sample_size", sample_size, least=2) - 1
        multiplier = shaped_noise_multiplier(budget, correlation=correlation, steps=steps)
        return cls(covariance, correlation, clipping, multiplier, sample_size)

    def spent(self, *, neighbours: Neighbours | str = Neighbours.REPLACE_ONE) -> float:
        """zCDP budget of releasing all iterates; `inf` without noise."""
        if self.noise_multiplier == 0:
            return inf
        return shaped_budget(
            self.noise_multiplier,
            correlation=self.correlation,
            steps=self.sample_size - 1,
            neighbours=neighbours,
        ).rho
