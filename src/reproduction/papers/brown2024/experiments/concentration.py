"""Tail bounds and matrix facts of the preliminaries, exactly, and random matrices by simulation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from reproduction.experiment.datasets import variable
from reproduction.experiment.parameters import Strict
from reproduction.experiment.quantities import (
    Count,
    Dimension,
    Rising,
    SampleSize,
    StepSize,
    more_than,
)
from reproduction.experiment.summaries import mean_and_error

if TYPE_CHECKING:
    import xarray as xr

    from reproduction.experiment.trials import Trials

PLACE = "Appendix A (Fact A.7, Claims A.8-A.12), Lemma C.6, Appendix C"


class Parameters(Strict):
    """Sizes of the drawn matrices."""

    dimension: Annotated[Dimension, Field(ge=2)] = Field(description="Features p.")
    sample_size: Annotated[SampleSize, Field(ge=4)] = Field(
        description="Sample size n of the error of least squares."
    )
    ratios: Annotated[Rising[Count], Field(min_length=2)] = Field(
        description="n / p for the spectrum of Sigma."
    )
    wide_dimension: Annotated[Dimension, Field(ge=2)] = Field(
        description="Features p for the spectrum of Sigma."
    )
    draws: Annotated[Count, Field(ge=2)] = Field(description="Data sets in each trial.")
    power: Count = Field(description="t of Lemma C.6.")
    step_size: StepSize = Field(description="eta.")

    _more_rows_than_columns = more_than("sample_size", "dimension")


def theory(parameters: Parameters) -> xr.Dataset:
    """Exact tails against their bounds, and the matrix facts, also as printed."""
    import xarray as xr
    from scipy.special import betainc, gammaincc, ndtr

    failure = np.geomspace(1e-12, 0.999, 400)
    width = np.sqrt(2 * np.log(2 / failure))
    normal = 2 * ndtr(-width) / failure
    dimensions = np.array([1, 2, 5, 10, 100, 1000])[:, None]
    # Identity covariance: trace p and norm 1.
    radius = np.sqrt(dimensions) + np.sqrt(2 * np.log(1 / failure))
    norm = gammaincc(dimensions / 2, radius**2 / 2) / failure
    angle = np.linspace(0, 1, 401)[1:-1]
    tail = 1 - betainc(0.5, (dimensions[1:] - 1) / 2, angle**2)
    sphere = tail / np.exp(-(np.sqrt(dimensions[1:]) - 1) * angle / 4)

    matrix = np.array([[0.5, 0.2, 0.0], [0.1, -0.3, 0.2], [0.0, 0.4, 0.6]])
    count = 7
    powers = [np.linalg.matrix_power(matrix, j) for j in range(count)]
    identity = np.eye(3)
    closed = np.linalg.solve(identity - matrix, identity - np.linalg.matrix_power(matrix, count))
    printed = count * np.linalg.matrix_power(matrix, count)
    # Sigma = I / 2 and eta = 1/4, which the No-Clipping Condition admits, attain the norm 7/8.
    m, p, steps = 10, 100, 3
    frobenius = np.linalg.norm((7 / 8) ** (2 * steps) * np.eye(p))

    def scalar(value: float, meaning: str) -> tuple:
        return variable((), value, meaning)

    return xr.Dataset(
        {
            "normal_tail_ratio": scalar(normal.max(), "largest exact tail over bound, Claim A.8"),
            "norm_tail_ratio": scalar(norm.max(), "largest exact tail over bound, Claim A.9"),
            "sphere_tail_ratio": scalar(sphere.max(), "largest exact tail over bound, Claim A.11"),
            "geometric_sum_error": scalar(
                np.abs(sum(powers) - closed).max(), "error of Fact A.7 with summand T^j"
            ),
            "geometric_sum_error_printed": scalar(
                np.abs(printed - closed).max(), "error of Fact A.7 with summand T^n"
            ),
            "largest_stationary_norm": scalar(
                1 / (1 - (7 / 8) ** 2), "largest norm of (I - M^2)^-1 where the norm of M is 7/8"
            ),
            "frobenius_over_printed_bound": scalar(
                frobenius / (np.sqrt(m) * (7 / 8) ** steps),
                "Frobenius norm of D^t over sqrt(m) (7/8)^t, at m = 10, p = 100 and t = 3",
            ),
            "lower_edge_ratio": scalar(
                1 / (1 - np.sqrt(0.5)) ** 2, "n / p at which the lower spectral edge is 1/2"
            ),
            "upper_edge_ratio": scalar(
                1 / (np.sqrt(2) - 1) ** 2, "n / p at which the upper spectral edge is 2"
            ),
        }
    )


def simulate(parameters: Parameters, trials: Trials) -> xr.Dataset:
    """Error of least squares, direction of a propagated row, spectra of sample covariances."""
    import xarray as xr
    from scipy.special import betainc

    from reproduction.experiment.progress import track
    from reproduction.papers.brown2024.synthetic_data import draw

    p, n, draws = parameters.dimension, parameters.sample_size, parameters.draws
    square, rank, sign = (np.empty((len(trials), draws)) for _ in range(3))
    bounded = np.empty((len(trials), len(parameters.ratios)))
    edges = np.empty((len(trials), len(parameters.ratios), 2))
    for at, trial in enumerate(track(trials, total=len(trials), label=trials.experiment)):
        for row in range(draws):
            data, target = draw(n, p, trial.rng)
            x = data.features
            gap = np.linalg.solve(x.T @ x, x.T @ (data.labels - x @ target))
            square[at, row] = gap @ gap * (n - p - 1) / p
            contraction = np.eye(p) - parameters.step_size * (x.T @ x) / n
            moved = np.linalg.matrix_power(contraction, parameters.power) @ x[0]
            moved /= np.linalg.norm(moved)
            # On the sphere the square of a coordinate is beta distributed: this is its rank.
            rank[at, row] = betainc(0.5, (p - 1) / 2, moved[0] ** 2)
            sign[at, row] = np.sign(moved[0])
        for column, ratio in enumerate(parameters.ratios):
            count = ratio * parameters.wide_dimension
            x = trial.rng.standard_normal((count, parameters.wide_dimension))
            eigenvalues = np.linalg.eigvalsh(x.T @ x / count)
            edges[at, column] = eigenvalues[[0, -1]]
            bounded[at, column] = eigenvalues[0] >= 0.5 and eigenvalues[-1] <= 2
    return xr.Dataset(
        {
            "square": variable(
                ("trial", "draw"), square, "squared error of least squares over p / (n - p - 1)"
            ),
            "direction_rank": variable(
                ("trial", "draw"), rank, "rank of a propagated row's direction"
            ),
            "direction_sign": variable(("trial", "draw"), sign, "sign of that direction"),
            "bounded": variable(("trial", "ratio"), bounded, "whether half I <= Sigma <= 2 I"),
            "edges": variable(("trial", "ratio", "edge"), edges, "extreme eigenvalues of Sigma"),
        },
        coords={
            "ratio": variable("ratio", parameters.ratios, "n / p"),
            "edge": variable("edge", ["lower", "upper"], "end of the spectrum"),
        },
    )


def summarise(parameters: Parameters, simulation: xr.Dataset) -> xr.Dataset:
    """Means over draws, and the largest distance of the ranks to uniform ones."""
    import xarray as xr

    ranks = np.sort(simulation.direction_rank.values.ravel())
    steps = np.arange(len(ranks) + 1) / len(ranks)
    distance = max(np.max(steps[1:] - ranks), np.max(ranks - steps[:-1]))
    variables: dict[str, tuple] = {}
    for name in ("square", "direction_sign"):
        variables |= mean_and_error(
            name, simulation[name].values.ravel(), (), simulation[name].attrs["long_name"]
        )
    for name in ("bounded", "edges"):
        array = simulation[name]
        variables |= mean_and_error(
            name, np.moveaxis(array.values, 0, -1), _names(array), array.attrs["long_name"]
        )
    variables["direction_distance"] = variable(
        (),
        distance * np.sqrt(len(ranks)),
        "Kolmogorov distance of the direction to a uniform one, times the root of the draws",
    )
    root = 1 / np.sqrt(np.asarray(parameters.ratios, dtype=float))
    variables["limit_edges"] = variable(
        ("ratio", "edge"),
        np.stack([(1 - root) ** 2, (1 + root) ** 2], axis=-1),
        "edges of the Marchenko-Pastur law",
    )
    variables["edge_gap"] = variable(
        ("ratio", "edge"),
        variables["edges"][1] - variables["limit_edges"][1],
        "mean extreme eigenvalues less the law's edges",
        standard_error="edges_standard_error",
    )
    return xr.Dataset(
        variables, coords={name: simulation[name].variable for name in ("ratio", "edge", "trial")}
    )


def _names(array: xr.DataArray) -> list[str]:
    """Dimensions without the trials."""
    return [str(name) for name in array.dims if name != "trial"]
