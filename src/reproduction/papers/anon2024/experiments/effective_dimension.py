"""The trace tr(Sigma^-1 H) beside the effective dimension, and steps to the corollaries."""

from __future__ import annotations

from typing import Any

import numpy as np
from pydantic import Field

from privreg.noise.covariance import PublicCovariance
from reproduction.engine import quantities as q
from reproduction.engine.parameters import Strict
from reproduction.engine.recipe import (
    Axis,
    Dataset,
    Quantity,
    Trial,
    above,
    below,
    between,
    every,
    means,
    per,
    stage,
    stated,
)
from reproduction.papers.anon2024 import setting

PLACE = "Sections 3.2 and 4.1, Sections B.3.1 and B.3.3, Lemmas B.10, B.11 and B.16"


class Parameters(Strict):
    """Infinite power laws for the population, finite ones for public features."""

    decays: q.Some[setting.Decay] = Field(description="Decay exponents r.")
    horizons: q.LogAxis = Field(description="N times the step size.")
    dimension: q.Plural[q.Dimension] = Field(description="Dimension d of the public features.")
    sample_size: q.Plural[q.SampleSize] = Field(description="Number N of private rows.")
    public_ratios: q.Some[q.Count] = Field(description="Public over private rows, M / N.")
    sampled_horizons: q.Some[q.Positive] = Field(description="N eta of the samples.")


AXES = {
    "decay": setting.AXES["decay"],
    "horizon": Axis("N times the step size", "horizons"),
    "public_ratio": Axis("public rows divided by N", "public_ratios"),
    "sampled_horizon": Axis("N times the step size", "sampled_horizons"),
    "term": Axis("term of the bound", ("first", "second")),
}
AT_SMALL_RIDGES: dict[str, Any] = {
    "ours": [
        "eigenvalues e^-i, d = 64, M = 16",
        "lambda = 1e-10 to 1e-6, medians of 20 draws (high probability: above 1/2)",
        "a power of up to 0.1 counts as none",
    ],
    "finding": "public-rows-without-a-cutoff",
}
STEPS = "r = 1.5, 2 and 3, d = 1024, N eta = 1 to 1e5, eta tr(H) = 1/2"
SAMPLED = ("decay", "public_ratio", "sampled_horizon")


@per(
    effective_dimension=Quantity("effective dimension", "decay horizon"),
    shaped_trace=Quantity("tr((H + I/a)^-1 H), exact", "decay horizon"),
    smallest_trace_ratio="smallest ratio of the trace to the effective dimension",
    largest_trace_ratio="largest ratio of the trace to the effective dimension",
)
def traces(parameters: Parameters) -> dict:
    from privreg.theory.shaped_noise import PowerLawDecay, effective_dimension

    horizons = parameters.horizons.values()
    laws = [PowerLawDecay(r) for r in parameters.decays]
    dimension = np.array([effective_dimension(law, horizons) for law in laws])
    trace = np.array([[law.shaped_trace(a) for a in horizons] for law in laws])
    ratio = trace / dimension
    return {
        "effective_dimension": dimension,
        "shaped_trace": trace,
        "smallest_trace_ratio": ratio.min(),
        "largest_trace_ratio": ratio.max(),
    }


@per(
    "decay",
    "horizon",
    nonprivate_variance_step=stated(
        "printed variance of (B.7) divided by 2 sigma^2 (k* + N^2 eta^2 sum lambda^2) / N",
        where="Section B.3.1, equation (B.7)",
        statement="Without privacy the variance of (B.7) is at most of order "
        "sigma^2 (k* + N^2 eta^2 sum lambda^2) / N.",
        check=every(below(1.0)),
        id="nonprivate-variance-b7",
        ours=["the constant 2", STEPS],
    ),
    bias_step=stated(
        "terms of the bias (B.5) for the worst start, divided by 1 and 4 times those of (B.8)",
        "term",
        where="Section B.3.1, equation (B.8)",
        statement="For starts of norm B the bias (B.5) is at most of order B^2 / (N eta) + "
        "B^2 (k* + N eta sum lambda) / (N^2 eta).",
        check=every(below(1.0000001)),
        id="bias-of-bounded-starts-b8",
        ours=["beta = 1", "each of the two terms by itself, with the constants 1 and 4", STEPS],
    ),
    private_step=stated(
        "terms of the first line of (B.11), divided by those of the second",
        "term",
        where="Section B.3.1, equation (B.11)",
        statement="In (B.11), on the private variance at Sigma = I, line 1 is at most line 2.",
        check=every(below(1.0000001)),
        id="private-variance-b11",
        ours=["each of line 1's two terms is compared with the same term of line 2", STEPS],
    ),
    designed_first_step=stated(
        "I_1 divided by 2 N eta^2 times the effective dimension",
        where="Section B.3.3",
        statement="The proof's I_1 is at most of order N eta^2 times the effective dimension.",
        check=every(below(1.0)),
        id="first-part-of-b33",
        ours=["the constant 2", STEPS],
    ),
    designed_second_step=stated(
        "terms of I_2 (population's design) divided by 1 and 2 times the effective dimension",
        "term",
        where="Section B.3.3",
        statement="The proof's I_2 is at most of the order of the effective dimension.",
        check=every(below(1.0)),
        id="second-part-of-b33",
        ours=[
            "Sigma = H + I / (N eta), H in place of public features",
            "each of the two terms of I_2 by itself, with the constants 1 and 2",
            STEPS,
        ],
    ),
)
def corollary_steps(parameters: Parameters, decay: float, horizon: float) -> dict[str, Any]:
    """Inequalities that lead from Lemmas B.8 and B.9 to the corollaries, at eta tr(H) = 1/2."""
    lam = setting.power_law(parameters.dimension, decay)
    trace = float(lam.sum())
    eta = 0.5 / trace
    size = horizon / eta
    head = lam >= 1 / horizon
    count, tail = int(head.sum()), lam[~head]
    squares = count + horizon**2 * float(np.sum(tail**2))
    dimension = count + horizon * float(tail.sum())
    inverse = np.where(head, 1 / lam, horizon**2 * lam)
    mixed = np.where(head, 1.0, horizon * lam)

    variance = eta / size * (mixed @ lam) * squares + inverse @ lam / size
    shrink = 1 - eta * trace
    direct = np.where(head, 1 / (lam * horizon**2), lam).max() * horizon
    spread = 2 * mixed.max() / shrink * squares / (4 * dimension)
    design = lam + 1 / horizon
    first = (eta * squares) ** 2 + eta * (inverse @ mixed)
    second = eta * (mixed @ design) * squares
    return {
        "nonprivate_variance_step": variance / (2 * squares / size),
        "bias_step": [direct, spread],
        "private_step": [mixed.sum() * squares / dimension**2, inverse.sum() / horizon / dimension],
        "designed_first_step": first / (2 * size * eta**2 * dimension),
        "designed_second_step": [second / dimension, inverse @ design / (2 * dimension)],
    }


@per(
    equal_orders=stated(
        "log-log slope in N of the right side of (B.10) divided by its left side, flat tail",
        where="Section B.3.1, equation (B.9)",
        statement="The right sides of (B.9) and (B.10) are of the same order for every spectrum.",
        check=between(-0.1, 0.1),
        corrected={
            "holds_with": '"at most" in place of "of the same order"',
            "check": above(-0.001),
        },
        id="equal-orders-b10",
        ours=[
            "same order: a slope from -0.1 to 0.1; at most: a slope above -0.001, for rounding",
            "one eigenvalue 1, N^3 equal ones of sum 1; sigma = B = 1, eta = 1/4, N = 1e4 to 1e6",
        ],
        finding="equal-orders-in-b10",
    )
)
def equal_orders() -> float:
    """Slope for a tail that lies below 1/(N eta)."""
    sizes = np.geomspace(1e4, 1e6, 9)
    horizon = sizes / 4
    rest = 1 / horizon
    left = (1 + horizon**2 / sizes**3) / sizes + rest + rest / sizes * (1 + horizon)
    right = rest + (1 / sizes + rest / sizes) * (1 + horizon)
    return float(np.polyfit(np.log(sizes), np.log(right / left), 1)[0])


@per(
    trace_power=stated(
        "power of 1/lambda in tr(Sigma^-1 H) divided by the bound of Lemma B.10",
        where="Lemma B.10",
        statement="With high probability the trace of Sigma^-1 H is at most of the order of the "
        "printed bound, for every lambda > 0.",
        check=below(0.1),
        id="trace-at-every-ridge-b10",
        kind="theorem",
        **AT_SMALL_RIDGES,
    ),
    form_power=stated(
        "power of 1/lambda in the bound of Lemma B.16 divided by the least form",
        where="Lemma B.16",
        statement="With high probability the leave-one-out forms are at least of the order of the "
        "printed bound, for every lambda > 0.",
        check=below(0.1),
        id="forms-at-every-ridge-b16",
        **AT_SMALL_RIDGES,
    ),
)
def small_ridges() -> dict[str, float]:
    """Slopes over medians of 20 draws, where k is larger than M."""
    rng, lam = setting.generator(11), np.exp(-np.arange(1.0, 65))
    ridges, rows = np.geomspace(1e-10, 1e-6, 5), 16
    found = np.zeros((2, 20, ridges.size))
    for draw in range(20):
        normals = rng.standard_normal((rows, lam.size))
        for at, ridge in enumerate(ridges):
            forms = setting.leave_one_out_forms(lam, normals, ridge)
            trace_bound, form_bound = setting.public_bounds(lam, rows, ridge)
            found[0, draw, at] = rows * np.sum(lam / (ridge + lam * forms)) / trace_bound
            found[1, draw, at] = form_bound / forms.min()
    powers = np.polyfit(-np.log(ridges), np.log(np.median(found, axis=1)).T, 1)[0]
    return {"trace_power": powers[0], "form_power": powers[1]}


@per(
    "decay",
    few_rows_power="power of N eta in tr(Sigma^-1 H) / (effective dimension), 8 public rows",
)
def few_public_rows(parameters: Parameters, decay: float) -> float:
    """Traces from few public rows at lambda = M / (N eta)."""
    lam, horizons = setting.power_law(parameters.dimension, decay), np.geomspace(1e2, 1e4, 5)
    rows = setting.generator(12).standard_normal((8, lam.size)) * np.sqrt(lam)
    design, found = PublicCovariance(rows, ridge=8.0), []
    for a in horizons:
        found.append(design.with_ridge(8 / a).inverse_trace(lam) / np.minimum(1, a * lam).sum())
    return float(np.polyfit(np.log(horizons), np.log(found), 1)[0])


@per(
    *SAMPLED,
    inverse_ratio="tr(Sigma^-1 H) with public features divided by that of the population",
    forward_ratio="tr(Sigma H) with public features divided by that of the population",
    direction_ratio="largest v' Sigma v, public features' divided by population's, v eigenvectors",
)
def run(parameters: Parameters, trial: Trial) -> list:
    """Traces for a Σ from public features, the first rows of one table."""
    most = max(parameters.public_ratios) * parameters.sample_size
    normals = trial.rng.standard_normal((most, parameters.dimension))

    def ratios(decay: float, rows: int) -> list[dict]:
        lam, public = setting.power_law(parameters.dimension, decay), normals[:rows]
        design, squares = PublicCovariance(public * np.sqrt(lam), ridge=rows), public**2
        found = []
        for horizon in parameters.sampled_horizons:
            covariance, population = design.with_ridge(rows / horizon), lam + 1 / horizon
            along = (lam * squares.mean(axis=0) + 1 / horizon) / population
            found.append(
                {
                    "inverse_ratio": covariance.inverse_trace(lam) / np.sum(lam / population),
                    "forward_ratio": covariance.trace(lam) / np.sum(lam * population),
                    "direction_ratio": along.max(),
                }
            )
        return found

    return [
        [ratios(decay, ratio * parameters.sample_size) for ratio in parameters.public_ratios]
        for decay in parameters.decays
    ]


@per(*SAMPLED, inverse_over_bound="largest tr(Sigma^-1 H) of all draws / Lemma B.10 at constant 1")
def over_bound(parameters: Parameters, simulation: Dataset, **cell: Any) -> float:
    # The bound, as the ratios are, over the population's trace.
    lam = setting.power_law(parameters.dimension, cell["decay"])
    rows, horizon = cell["public_ratio"] * parameters.sample_size, cell["sampled_horizon"]
    bound, _ = setting.public_bounds(lam, rows, rows / horizon)
    over_population = bound / np.sum(lam / (lam + 1 / horizon))
    return simulation.inverse_ratio.sel(cell).values.max() / over_population


@per(worst_direction="largest v' Sigma v / population's, of all eigenvectors and draws")
def worst_direction(simulation: Dataset) -> float:
    """tr(A Sigma) is a weighted sum of these, so that no A that commutes with H exceeds it."""
    return float(simulation.direction_ratio.max())


theory = stage(AXES, traces, corollary_steps, equal_orders, small_ridges, few_public_rows)
simulate = stage(AXES, run)
summarise = stage(AXES, means(run), over_bound, worst_direction)
