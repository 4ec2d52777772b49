"""Parameters that the recipes of brown2024 share, the paper's synthetic data, and DP-GD on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field

from reproduction.engine import quantities as q
from reproduction.engine.parameters import Strict
from reproduction.engine.recipe import Axis

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from privreg.algorithms.full_batch_dpgd import FullBatchIterates
    from privreg.algorithms.samples import ArraySamples, Samples
    from privreg.theory.full_batch_dpgd import GradientDescentLaw

# Up to 0.5 descent is stable on whitened features, if rows outnumber columns.
StepSize = Annotated[q.StepSize, Field(ge=1e-3, le=0.5)]
LABEL_NOISE_STD = 1.0
REWEIGHTINGS = 2000


class OneSize(Strict):
    """Tables of one size and the step size; the paper's experiments state neither n nor eta."""

    dimension: q.Dimension = Field(description="Features p.")
    sample_size: q.Plural[q.SampleSize] = Field(description="Sample size n.")
    step_size: StepSize = Field(description="eta.")

    _more_rows_than_columns = q.more_than("sample_size", "dimension")


class OneThreshold(OneSize):
    """Tables of one size, clipped at one multiple of sqrt(p)."""

    clip_constant: q.ClipConstant = Field(description="gamma / sqrt(p).")

    @property
    def clip_norm(self) -> float:
        """Clipping norm gamma."""
        return self.clip_constant * np.sqrt(self.dimension)

    def gradient_noise_std(self, rho: ArrayLike, gradients: int) -> NDArray[np.float64]:
        """Standard deviation of the noise at which this number of gradients costs rho in total."""
        from privreg.algorithms.full_batch_dpgd import full_batch_noise_std

        return full_batch_noise_std(
            clip_norm=self.clip_norm, rho=rho, sample_size=self.sample_size, gradients=gradients
        )


class Runs(OneThreshold):
    """Runs on data sets of one size."""

    steps: q.Steps = Field(description="Gradient steps T.")
    runs: q.Count = Field(description="Runs on each data set, in each trial.")

    def coupled(
        self, data: Samples, noise: ArrayLike, rng: np.random.Generator, **options: Any
    ) -> list[FullBatchIterates]:
        """Runs without clipping and with it, with the same noise."""
        from privreg.algorithms.full_batch_dpgd import full_batch_dpgd

        # One bound a call: a finite one would keep screening from replacing the unclipped rows.
        state, found = rng.bit_generator.state, []
        for clip_norm in (np.inf, self.clip_norm):
            rng.bit_generator.state = state
            path = full_batch_dpgd(
                data,
                clip_norm=clip_norm,
                step_size=self.step_size,
                gradient_noise_std=noise,
                steps=self.steps,
                runs=self.runs,
                rng=rng,
                **options,
            )
            found.append(path)
        return found


def rhos(parameters: Any) -> list[float]:
    """Each budget's rho."""
    return [budget.rho for budget in parameters.budgets]


RHO = Axis("zCDP budget", rhos)


def draw(
    sample_size: int,
    dimension: int,
    rng: np.random.Generator,
    *,
    anisotropic: bool = False,
    label_noise_mean: float = 0.0,
    label_noise_std: float = LABEL_NOISE_STD,
) -> tuple[ArraySamples, NDArray[np.float64]]:
    """A data set and its target, as in Definition 1.1 or, with a random covariance, Appendix B."""
    from privreg.algorithms.samples import ArraySamples
    from privreg.kernels import standard_normal

    target = unit_vector(dimension, rng)
    root = covariance_root(dimension, rng) if anisotropic else None
    features = standard_normal(rng, (sample_size, dimension))
    if root is not None:
        features = features @ root.T
    labels = features @ target + label_noise_mean
    labels += label_noise_std * rng.standard_normal(sample_size)
    return ArraySamples(features, labels), target


def unit_vector(dimension: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Uniform draw from the unit sphere."""
    direction = rng.standard_normal(dimension)
    return np.asarray(direction / np.linalg.norm(direction))


def covariance_root(dimension: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """C with C Cᵀ = U Λ Uᵀ: Λ holds 2, 1 and uniform draws from [1, 2], U is Haar."""
    scales = np.concatenate([[2.0, 1.0], rng.uniform(1, 2, max(dimension - 2, 0))])[:dimension]
    columns, triangle = np.linalg.qr(rng.standard_normal((dimension, dimension)))
    # The signs make the factor unique, without which the rotation is not uniform.
    return np.asarray(columns * np.sign(np.diag(triangle)) * np.sqrt(scales))


def descend(
    data: Samples,
    *,
    clip_norm: ArrayLike,
    rho: ArrayLike,
    steps: int,
    gradients: int | None = None,
    **options: Any,
) -> FullBatchIterates:
    """DP-GD with noise at which `gradients` gradients, by default those of one run, cost rho.

    By default `times` is the last step alone; None keeps every step.
    """
    from privreg.algorithms.full_batch_dpgd import full_batch_dpgd, full_batch_noise_std

    noise = full_batch_noise_std(
        clip_norm=clip_norm, rho=rho, sample_size=data.sample_size, gradients=gradients or steps
    )
    options = {"times": [steps], **options}
    return full_batch_dpgd(
        data, clip_norm=clip_norm, gradient_noise_std=noise, steps=steps, **options
    )


def law_of(data: Samples, step_size: float, noise: Any = 0.0) -> GradientDescentLaw:
    """The law of unclipped DP-GD on a data set."""
    from privreg.algorithms.samples import moments
    from privreg.theory.full_batch_dpgd import gradient_descent_law

    return gradient_descent_law(
        *moments(data),
        sample_size=data.sample_size,
        step_size=step_size,
        gradient_noise_std=float(noise),
    )


def clipped_minimiser(data: ArraySamples, clip_norm: float) -> np.ndarray:
    """Minimiser of the loss that clipped gradients descend, a sum of Huber losses: section 2.5."""
    x, y = data.features, data.labels
    width = clip_norm / data.norms
    # Unlike Newton's method, reweighting descends from anywhere.
    found: np.ndarray = np.zeros(data.dimension)
    for _ in range(REWEIGHTINGS):
        weights = np.minimum(1, width / np.abs(y - x @ found))
        before, found = found, np.linalg.solve((x.T * weights) @ x, x.T @ (weights * y))
        if np.linalg.norm(found - before) < 1e-14:
            break
    gradient = x.T @ np.clip(y - x @ found, -width, width)
    if not np.linalg.norm(gradient) <= 1e-9 * clip_norm * len(y):
        raise RuntimeError("the clipped loss must have a minimiser that reweighting finds")
    return found
