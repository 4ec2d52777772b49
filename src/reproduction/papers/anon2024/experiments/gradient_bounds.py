"""Why no gradient is clipped: tails of Gaussian features and labels, and runs that are watched."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from reproduction.experiment import quantities as q
from reproduction.experiment.cells import Axis, Quantity, per, stage, trials_last
from reproduction.papers.anon2024 import setting
from reproduction.papers.anon2024.setting import GAUSSIAN_SCALE, SHAPES

if TYPE_CHECKING:
    import xarray as xr

    from reproduction.experiment.trials import Trial

PLACE = "Sections 3.1 and B.2.1, Lemmas B.2, B.3, B.13 and B.16"


class Parameters(setting.Problem):
    """A problem, and the grids of the tail bounds."""

    estimating_rows: q.Count = Field(description="Public labelled rows m of the estimate.")
    degrees: q.Some[q.Count] = Field(description="Ranks of the identity in the bounds.")
    failures: q.LogAxis = Field(description="beta, at most 1/2.")
    public_rows: q.Some[q.Count] = Field(description="Public rows M.")
    horizon: q.Positive = Field(description="N eta of the design in Lemma B.16.")


AXES = {
    "noise_shape": setting.AXES["noise_shape"],
    "public_rows": Axis("public rows M", "public_rows"),
    "failure": Axis("failure probability beta", "failures"),
}


@per(norm_constant="least c_1 of Lemma B.2 for the norm")
def norm_constant(parameters: Parameters) -> float:
    from scipy.stats import chi2

    failures = parameters.failures.values()
    bounds = [2 * GAUSSIAN_SCALE * d * np.log(1 / failures) for d in parameters.degrees]
    tails = zip(bounds, parameters.degrees, strict=True)
    return max((chi2.sf(bound, d) / failures).max() for bound, d in tails)


@per(
    product_constant="least c_2 of Lemma B.2 for the product",
    scaled_label_constant="least c_3 with K^2 in gamma_3",
)
def product_constant(parameters: Parameters) -> dict:
    """One tail for both: a normal variable beyond the printed multiple of its scale."""
    from scipy.stats import chi2

    failures = parameters.failures.values()
    constant = (chi2.sf(GAUSSIAN_SCALE * np.log(1 / failures), 1) / failures).max()
    return {"product_constant": constant, "scaled_label_constant": constant}


@per(
    label_constant=Quantity(
        "least c_3 of Lemma B.2 for the label noise, gamma_3 as printed", "failure"
    ),
    label_exponent="local power of beta in that probability at the least beta",
)
def label_constant(parameters: Parameters) -> dict:
    from scipy.stats import chi2

    failures = parameters.failures.values()
    label = chi2.sf(np.log(1 / failures), 1) / failures
    power = 1 + np.log(label[0] / label[1]) / np.log(failures[0] / failures[1])
    return {"label_constant": label, "label_exponent": power}


@per(tail_constant="least c of Lemma B.13 over ranks and t")
def tail_constant(parameters: Parameters) -> float:
    from scipy.stats import chi2

    excess = np.geomspace(1e-2, 1e4, 400)
    return min(
        (-chi2.logsf(GAUSSIAN_SCALE * d + excess, d) * GAUSSIAN_SCALE / excess).min()
        for d in parameters.degrees
    )


@per(
    largest_gradient=Quantity("largest gradient over its clip norm", "noise_shape"),
    product_error="distance of the gradient's norm from its two factors",
    least_estimate="least squared residual estimate over the true mean square",
    least_form=Quantity("least form of Lemma B.16 over its bound at C = 1", "public_rows"),
)
def run(parameters: Parameters, trial: Trial) -> dict:
    """Gradients of runs without private noise over their clip norms, and Lemma B.16's forms."""
    rows = parameters.model.sample(parameters.sample_size, trial.rng)
    estimating = parameters.model.sample(parameters.estimating_rows, trial.rng)
    runs = [_watched_run(parameters, name, rows, estimating) for name in SHAPES]
    gradients, errors, estimates = zip(*runs, strict=True)
    return {
        "largest_gradient": gradients,
        "product_error": max(errors),
        "least_estimate": estimates[-1],
        "least_form": [_least_form(parameters, m, trial.rng) for m in parameters.public_rows],
    }


@per(
    "noise_shape",
    clipped_runs="share of runs that clip a gradient, over 1/N",
    largest_gradient="largest gradient over its clip norm in all runs",
)
def gradients(parameters: Parameters, simulation: xr.Dataset) -> dict:
    largest = trials_last(simulation.largest_gradient)
    return {
        "clipped_runs": (largest > 1).mean(axis=-1) * parameters.sample_size,
        "largest_gradient": largest.max(axis=-1),
    }


@per(
    product_error="largest distance of a gradient's norm from its two factors",
    underestimates="share of runs in which an estimate is below the truth",
    least_form=Quantity("least form of Lemma B.16 over its bound at C = 1", "public_rows"),
)
def worst(simulation: xr.Dataset) -> dict:
    return {
        "product_error": simulation.product_error.values.max(),
        "underestimates": (simulation.least_estimate.values < 1).mean(),
        "least_form": trials_last(simulation.least_form).min(axis=-1),
    }


theory = stage(AXES, norm_constant, product_constant, label_constant, tail_constant)
simulate = stage(AXES, run)
summarise = stage(AXES, gradients, worst)


def _watched_run(
    parameters: Parameters,
    name: str,
    rows: tuple[np.ndarray, np.ndarray],
    estimating: tuple[np.ndarray, np.ndarray],
) -> tuple[float, float, float]:
    """Algorithm 1 without noise, at the theorem's constant and step size."""
    from privreg.algorithms.residual_estimate import public_residual_scale

    eta = parameters.step_cap
    shape = parameters.shape(name, eta)
    constant, lam = parameters.clip_constant(shape), parameters.eigenvalues
    iterate, largest, error, least = np.zeros(parameters.dimension), 0.0, 0.0, np.inf
    for x, y in zip(*rows, strict=True):
        scale = public_residual_scale(*estimating, iterate)
        residual = float(x @ iterate - y)
        norm = float(np.sqrt(np.sum((x * residual) ** 2 / shape)))
        factors = float(np.sqrt(np.sum(x**2 / shape))) * abs(residual)
        error = max(error, abs(norm / factors - 1))
        largest = max(largest, norm / (constant * scale))
        truth = lam @ (iterate - parameters.target) ** 2 + parameters.label_noise_std**2
        least = min(least, scale**2 / float(truth))
        iterate = iterate - eta * x * residual
    return largest, error, least


def _least_form(parameters: Parameters, count: int, rng: np.random.Generator) -> float:
    """z_i' A_{-i}^-1 z_i over lambda M / (lambda + the tail), the least over directions i."""
    lam = parameters.eigenvalues
    ridge = count / parameters.horizon
    normals = rng.standard_normal((count, lam.size))
    matrix = np.eye(count) + (normals * (lam / ridge)) @ normals.T
    whole = np.einsum("mi,mi->i", normals, np.linalg.solve(matrix, normals))
    # Sherman and Morrison: without its own direction.
    forms = whole / (1 - lam / ridge * whole)
    tails = np.append(np.cumsum(lam[::-1])[::-1][1:], 0.0)
    tail_from = np.append(lam.sum(), tails)
    inside = np.append(lam, 0.0) * count <= ridge + tail_from
    place = int(np.argmax(inside))
    return float(forms.min() * (ridge + tail_from[place]) / (ridge * count))
