"""Public description of a regression: sizes, scales and the features' law."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, cast, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from privreg.immutable import Immutable
from privreg.ranges import short
from privreg.spectra import Spectrum
from privreg.validation import (
    require_array,
    require_choice,
    require_count,
    require_frozen,
    require_instance,
    require_number,
    require_real,
)

FloatArray = NDArray[np.float64]
FeatureLaw = Literal["gaussian", "uniform", "student_t5", "one_hot"]
FEATURE_LAWS: tuple[FeatureLaw, ...] = get_args(FeatureLaw)
LabelNoiseLaw = Literal["gaussian", "laplace", "student_t5", "student_t3"]
LABEL_NOISE_LAWS: tuple[LabelNoiseLaw, ...] = get_args(LabelNoiseLaw)
SKEWED_LAWS = ("exponential", "lognormal")


@dataclass(frozen=True)
class Problem(Immutable):
    r"""A linear regression as one describes it without looking at the data.

    .. math:: y = x^\top\theta^* + \xi, \qquad \mathbb E\,xx^\top = \mathrm{diag}(\lambda),\quad
        \operatorname{Var}\xi = \sigma^2

    in the basis of the features' eigenvectors, where the methods that are predicted do the same as
    in any other basis.

    Parameters
    ----------
    sample_size : int
        Number of rows n, public.
    eigenvalues : array_like, shape (p,)
        λ, eigenvalues of the features' second moment, more than 0.
    signal : float or array_like, shape (p,)
        The coefficients θ* along the eigenvectors, or their norm, which is then spread evenly.
    label_noise_std : float
        σ, more than 0.
    feature_law : {"gaussian", "uniform", "student_t5", "one_hot"}
        Law of the independent coordinates of a row, all of mean 0; with "one_hot" a row has one
        entry of 1 and the eigenvalues are the categories' probabilities, of sum 1.
    feature_norm : float, optional
        Declared bound on a row's norm, beyond which rows are shortened where a method caps them;
        √(2 Σλ) by default, and 1 for one-hot rows.
    label_bound : float, optional
        Declared bound on a label's size; four standard deviations of a label by default.
    label_noise_law : {"gaussian", "laplace", "student_t5", "student_t3"}
        Law of the label noise, of mean 0 and variance σ².
    misfit : float
        Correlation κ, in [0, 1], of the features with what clipping takes away from a residual
        (`prediction.misfit`): 0 where the noise is independent of the features, 0.2 to 0.5 on real
        tables.

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
                "eigenvalues must be the categories' probabilities of sum 1 with one-hot rows, "
                "got another sum"
            )
        coefficients = require_real("signal", signal)
        if coefficients.ndim == 0:
            norm = require_number("signal", signal, least=0, most=1e12)
            coefficients = np.full(values.size, norm / np.sqrt(values.size))
        coefficients = require_frozen(
            "signal", coefficients, shape=values.shape, least=-1e12, most=1e12
        )
        noise = require_number("label_noise_std", label_noise_std, least=1e-9, most=1e9)
        label_std = np.sqrt(values @ coefficients**2 + noise**2)
        largest = 1.0 if one_hot else np.sqrt(2 * values.sum())
        bounds = {
            "feature_norm": largest if feature_norm is None else feature_norm,
            "label_bound": 4 * label_std if label_bound is None else label_bound,
        }
        for name, value in bounds.items():
            bounds[name] = require_number(name, value, least=1e-12, most=1e12)
        for name, value in {
            "sample_size": require_count("sample_size", sample_size, least=2),
            "eigenvalues": values,
            "signal": coefficients,
            "label_noise_std": noise,
            "feature_law": law,
            "label_noise_law": require_noise_law("label_noise_law", label_noise_law),
            "misfit": require_number("misfit", misfit, least=0, most=1),
            **bounds,
        }.items():
            object.__setattr__(self, name, value)

    @classmethod
    def from_spectrum(
        cls,
        sample_size: int,
        spectrum: Spectrum,
        *,
        dimension: int,
        signal: float,
        label_noise_std: float,
        **more: float | str | None,
    ) -> Problem:
        """A problem with a spectrum's quantiles for eigenvalues.

        Parameters
        ----------
        sample_size : int
            n.
        spectrum : Spectrum
            Eigenvalues with the share of the dimensions that each stands for.
        dimension : int
            p.
        signal, label_noise_std, more
            As for the class, with the signal's norm alone.
        """
        require_instance("spectrum", spectrum, Spectrum)
        dimension = require_count("dimension", dimension)
        order = np.argsort(spectrum.eigenvalues)
        mass = np.cumsum(spectrum.weights[order])
        at = np.searchsorted(mass, (np.arange(dimension) + 0.5) / dimension * mass[-1])
        values = spectrum.eigenvalues[order][np.minimum(at, spectrum.modes - 1)]
        return cls(sample_size, values, signal=signal, label_noise_std=label_noise_std, **more)  # type: ignore[arg-type]

    def over(
        self,
        *,
        signal: ArrayLike = (1.0,),
        label_noise_std: ArrayLike = (1.0,),
        noise_shapes: Sequence[tuple[str, float]] | None = None,
    ) -> tuple[Problem, ...]:
        """Problems over a range of what is not known: every combination.

        Bounds stay as declared: they are public and one for all.

        Parameters
        ----------
        signal, label_noise_std : array_like, shape (k,)
            Factors, more than 0, that multiply the problem's.
        noise_shapes : sequence of (label_noise_law, misfit), optional
            Shapes of the label noise; the problem's own by default.

        Examples
        --------
        >>> problem = Problem(10_000, np.ones(10), signal=1.0, label_noise_std=1.0)
        >>> shapes = [("gaussian", 0.0), ("student_t3", 0.3)]
        >>> len(problem.over(signal=(0.5, 2.0), noise_shapes=shapes))
        4
        """
        factors = {"above": 0, "most": 1e100}
        scales = require_array("signal", signal, shape=(None,), **factors).tolist()
        noises = require_array(
            "label_noise_std", label_noise_std, shape=(None,), **factors
        ).tolist()
        if noise_shapes is None:
            noise_shapes = [(self.label_noise_law, self.misfit)]
        if not isinstance(noise_shapes, (list, tuple)) or not noise_shapes:
            raise ValueError(f"noise_shapes must be a list of pairs, got {short(noise_shapes)}")
        if not all(isinstance(each, (list, tuple)) and len(each) == 2 for each in noise_shapes):
            raise ValueError(
                f"noise_shapes must be pairs of a law and a misfit, got {short(noise_shapes)}"
            )
        shapes = [(require_noise_law("noise_shapes", law), misfit) for law, misfit in noise_shapes]
        return tuple(
            replace(
                self,
                signal=scale * self.signal,
                label_noise_std=factor * self.label_noise_std,
                label_noise_law=law,
                misfit=misfit,
            )
            for scale in scales
            for factor in noises
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
        r"""Length of a 95 % interval of least squares without privacy, root mean square.

        .. math:: 2 z \sigma \Big(\frac1{n - p} \cdot \frac1p \sum_j \lambda_j^{-1}\Big)^{1/2}
        """
        mean = float(np.mean(1 / self.eigenvalues))
        left = max(self.sample_size - self.dimension, 1)
        return 2 * float(ndtri(0.975)) * self.label_noise_std * float(np.sqrt(mean / left))

    @property
    def label_std(self) -> float:
        """Standard deviation of a label, signal and noise together."""
        return float(np.sqrt(2 * self.null_risk + self.label_noise_std**2))


def require_noise_law(name: str, value: object) -> LabelNoiseLaw:
    """A symmetric law of label noise, or an error that names what predicts a skewed one.

    That is private least squares alone. What a clip of fixed width leaves follows from mixtures of
    Gaussians, whose densities of the size fall from 0; that of a skewed law may rise.
    """
    if isinstance(value, str) and value in SKEWED_LAWS:
        raise ValueError(f"{name} must be symmetric, got {value!r}: see `predicted_length`")
    return cast(LabelNoiseLaw, require_choice(name, value, LABEL_NOISE_LAWS))
