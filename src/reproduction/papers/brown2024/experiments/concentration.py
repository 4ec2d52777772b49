"""Tail bounds and matrix facts of the preliminaries, exactly, and random matrices by simulation."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from reproduction.engine import quantities as q
from reproduction.engine.recipe import (
    Axis,
    Dataset,
    Mean,
    Quantity,
    Trial,
    below,
    identity,
    means,
    per,
    stage,
)
from reproduction.papers.brown2024.setting import OneSize, draw

PLACE = "Appendix A (Fact A.7, Claims A.8-A.12), Lemma C.6, Appendix C"


class Parameters(OneSize):
    """Sizes of the drawn matrices."""

    ratios: q.Grid[q.Count] = Field(description="n / p for the spectrum of Sigma.")
    wide_dimension: q.Plural[q.Dimension] = Field(
        description="Features p for the spectrum of Sigma."
    )
    linear_dimensions: q.Grid[q.Dimension] = Field(description="Features p where n grows with p.")
    draws: q.Plural[q.Count] = Field(description="Data sets in each trial.")
    power: q.Count = Field(description="t of Lemma C.6.")


AXES = {
    "ratio": Axis("n / p", "ratios"),
    "order": Axis("order of n in p, from 20 p at the least p on", ["linear", "root"]),
    "dimension": Axis("features p", "linear_dimensions"),
}
FAILURE = np.geomspace(1e-12, 0.999, 400)
MATRIX = np.array([[0.5, 0.2, 0.0], [0.1, -0.3, 0.2], [0.0, 0.4, 0.6]])
SUMMANDS = 7
# The bound on the norm of I - eta Sigma; Sigma = I / 2 and eta = 1/4 attain it.
CONTRACTION = 7 / 8


@identity(
    id="gaussian-tail",
    kind="theorem",
    where="Claim A.8",
    statement="A draw of N(0, sigma^2) is beyond sigma sqrt(2 ln(2 / beta)) in absolute value with "
    "probability at most beta.",
    ours=["400 values of beta from 1e-12 to 0.999"],
    check=below(1.0),
    wrong={"It is beyond sigma sqrt(ln(2 / beta)).": "normal_tail_without_two"},
    note="The exact probability is at most 0.24 beta. With ln(1 / beta) for ln(2 / beta) it would "
    "be below beta, too.",
)
def normal_tail_ratio() -> float:
    """Largest exact tail divided by its bound, Claim A.8."""
    return _normal_tail(2)


@identity(
    id="gaussian-norm-tail",
    kind="theorem",
    where="Claim A.9, equation (14)",
    statement="The norm of a draw of N(0, Sigma) exceeds sqrt(tr Sigma) + sqrt(2 |Sigma| ln(1 / "
    "beta)) with probability at most beta.",
    ours=[
        "Sigma = I for p from 1 to 1000, and diag(1, 1, s, s) with s = 0.1 and 0.01",
        "beta from 1e-12 to 0.999",
    ],
    check=below(1.0),
    wrong={
        "It exceeds sqrt(tr Sigma) + sqrt(|Sigma| ln(1 / beta)).": "norm_tail_without_two",
        "It exceeds sqrt(tr Sigma) + sqrt(2 tr Sigma ln(1 / beta) / p).": "norm_tail_by_the_mean",
    },
)
def norm_tail_ratio() -> float:
    """Largest exact tail divided by its bound, Claim A.9."""
    return max(_norm_tail(2), _two_level_tail(1.0, 1.0))


@per(
    normal_tail_without_two="largest exact tail divided by beta, beyond sigma sqrt(ln(2 / beta))",
    norm_tail_without_two="largest tail over bound, sqrt(tr Sigma) + sqrt(|Sigma| ln(1 / beta))",
    norm_tail_by_the_mean="largest exact tail over bound, tr Sigma / p in place of |Sigma|",
)
def tails_over_smaller_bounds() -> dict:
    """The two tails with another constant or norm."""
    return {
        "normal_tail_without_two": _normal_tail(1),
        "norm_tail_without_two": _norm_tail(1),
        "norm_tail_by_the_mean": _two_level_tail(0.55, 0.505),
    }


@per(
    geometric_sum_error="error of Fact A.7 with summand T^j",
    geometric_sum_error_printed="error of Fact A.7 with summand T^n",
    least_of_difference="least eigenvalue of I - D over the least of Sigma and D",
    covariance_error_at_singular_d="error of A^(t) where D is singular and I - D is invertible",
    covariance_error_one_power_short="error of A^(t) with D^(t - 1) for D^t",
)
def facts_on_inverses() -> dict[str, float]:
    powers = [np.linalg.matrix_power(MATRIX, j) for j in range(SUMMANDS + 1)]
    closed = np.linalg.solve(powers[0] - MATRIX, powers[0] - powers[-1])
    # At step size 1 the eigenvalues of D are those of (I - Sigma)^2.
    printed, singular = (1 - np.array([[0.5, 2.0], [0.5, 1.0]])) ** 2
    noise = np.sum(singular ** np.arange(SUMMANDS)[:, None], axis=0)
    covariance, short = ((1 - singular**t) / (1 - singular) for t in (SUMMANDS, SUMMANDS - 1))
    return {
        "geometric_sum_error": np.abs(sum(powers[:-1]) - closed).max(),
        "geometric_sum_error_printed": np.abs(SUMMANDS * powers[-1] - closed).max(),
        "least_of_difference": (1 - printed).min() / min(0.5, printed.min()),
        "covariance_error_at_singular_d": np.abs(covariance - noise).max(),
        "covariance_error_one_power_short": np.abs(short - noise).max(),
    }


@per(
    largest_stationary_norm="largest norm of (I - M^2)^-1 where the norm of M is 7/8",
    frobenius_over_printed_bound="norm of D^t relative to sqrt(m) (7/8)^t, m = 10, p = 100, t = 3",
    frobenius_over_bound="norm of D^t relative to sqrt(p) (7/8)^t",
)
def norms_of_contractions() -> dict[str, float]:
    m, p, steps = 10, 100, 3
    frobenius = np.linalg.norm(CONTRACTION ** (2 * steps) * np.eye(p))
    return {
        "largest_stationary_norm": 1 / (1 - CONTRACTION**2),
        "frobenius_over_printed_bound": frobenius / (np.sqrt(m) * CONTRACTION**steps),
        "frobenius_over_bound": frobenius / (np.sqrt(p) * CONTRACTION**steps),
    }


@per(
    rotation_error="error of rotating rows before or after (I - eta Sigma)^3, Lemma C.6",
    shear_error="error of a shear in place of the rotation",
)
def rotated_rows() -> dict[str, float]:
    shear = np.eye(3) + np.eye(3, k=1)

    def moved(rows: np.ndarray) -> np.ndarray:
        return rows @ np.linalg.matrix_power(np.eye(3) - 0.25 * rows.T @ rows / len(rows), 3)

    rotation_error, shear_error = (
        np.abs(moved(MATRIX @ turn) - moved(MATRIX) @ turn).max()
        for turn in (np.linalg.qr(shear.T)[0], shear)
    )
    return {"rotation_error": rotation_error, "shear_error": shear_error}


@per(
    covariance_tail="largest exact probability over beta that Sigma leaves [1/2, 2], p = 1 and "
    "n = 20 (p + ln(1 / beta))",
    covariance_tail_by_the_root="the same probability with sqrt(ln(1 / beta)) for ln(1 / beta)",
    least_squares_tail="largest exact quantile of n |theta_hat - theta*|^2 / (p + ln(1 / beta))",
    least_squares_tail_without_beta="the same over p",
)
def tails_in_beta() -> dict[str, float]:
    """Claims A.10 and A.12, beta from 1e-12 to 0.999."""
    from scipy.special import fdtri, gammainc, gammaincc

    logarithm = np.log(1 / FAILURE)
    # Given the features the square is z' (X'X)^-1 z: p / (n - p + 1) times an F variable.
    p = np.array([1, 2, 5, 10, 100, 1000])[:, None]
    n = 20 * (p + logarithm)
    square = n * p / (n - p + 1) * fdtri(p, n - p + 1, 1 - FAILURE)
    root = 20 * (1 + np.sqrt(logarithm))
    linear, root = (
        np.max((gammainc(n / 2, n / 4) + gammaincc(n / 2, n)) / FAILURE) for n in (n[0], root)
    )
    return {
        "covariance_tail": linear,
        "covariance_tail_by_the_root": root,
        "least_squares_tail": np.max(square / (p + logarithm)),
        "least_squares_tail_without_beta": np.max(square / p),
    }


@per(
    distance_over_gap="largest distance of two normal laws divided by the larger of their gaps",
    distance_over_squared_gap="the same distance divided by the square of this gap",
)
def distances_of_normals() -> dict[str, float]:
    """Exact total variation of N(0, 1) and N(a, 1 + b), a and |b| from 1/1000 to 1/2."""
    grid = np.linspace(-12, 12, 24001)
    first = np.exp(-(grid**2) / 2)
    gaps = np.append(0.0, np.geomspace(1e-3, 0.5, 12))
    found = []
    for mean in gaps:
        for excess in (*gaps, *-gaps[1:]):
            gap = max(mean, abs(excess))
            if gap:
                scale = np.sqrt(1 + excess)
                second = np.exp(-(((grid - mean) / scale) ** 2) / 2) / scale
                mass = np.sum(np.abs(first - second)) * (grid[1] - grid[0])
                distance = 0.5 * mass / np.sqrt(2 * np.pi)
                found.append((distance / gap, distance / gap**2))
    linear, squared = np.max(found, axis=0)
    return {"distance_over_gap": linear, "distance_over_squared_gap": squared}


theory = stage(AXES, blocks_of=globals())


@per(
    square=Quantity("squared error of least squares divided by p / (n - p - 1)", "draw"),
    direction_rank=Quantity("rank of a propagated row's direction", "draw"),
    direction_sign=Quantity("sign of a propagated row's direction", "draw"),
    bounded=Quantity("indicator of I / 2 <= Sigma <= 2 I", "ratio"),
    bounded_in_order=Quantity("indicator of I / 2 <= Sigma <= 2 I", "order dimension"),
)
def run(parameters: Parameters, trial: Trial) -> dict:
    """Error of least squares, direction of a propagated row, spectra of sample covariances."""
    from scipy.special import betainc

    p, n = parameters.dimension, parameters.sample_size
    found: dict[str, list] = {name: [] for name in run.quantities}
    for _ in range(parameters.draws):
        data, target = draw(n, p, trial.rng)
        x = data.features
        gap = np.linalg.solve(x.T @ x, x.T @ (data.labels - x @ target))
        found["square"].append(gap @ gap * (n - p - 1) / p)
        contraction = np.eye(p) - parameters.step_size * (x.T @ x) / n
        moved = np.linalg.matrix_power(contraction, parameters.power) @ x[0]
        moved /= np.linalg.norm(moved)
        # On the sphere the square of a coordinate is beta distributed: this is its rank.
        found["direction_rank"].append(betainc(0.5, (p - 1) / 2, moved[0] ** 2))
        found["direction_sign"].append(np.sign(moved[0]))
    wide, grid = parameters.wide_dimension, np.array(parameters.linear_dimensions)
    found["bounded"] = [_bounded(ratio * wide, wide, trial.rng) for ratio in parameters.ratios]
    for sizes in (20 * grid, 20 * np.sqrt(grid[0] * grid).astype(int)):
        row = [_bounded(*size, trial.rng) for size in zip(sizes, grid, strict=True)]
        found["bounded_in_order"].append(row)
    return found


@per(
    square=Mean("the squared error of least squares divided by p / (n - p - 1)"),
    direction_sign=Mean("the sign of a propagated row's direction"),
    direction_distance="Kolmogorov distance of directions to uniform, times sqrt(draws)",
)
def draws(simulation: Dataset) -> dict:
    """Means over draws, and the Kolmogorov distance of the ranks to the uniform law."""
    ranks = np.sort(simulation.direction_rank.values.ravel())
    steps = np.arange(len(ranks) + 1) / len(ranks)
    distance = max(np.max(steps[1:] - ranks), np.max(ranks - steps[:-1]))
    return {
        "square": simulation.square.values.ravel(),
        "direction_sign": simulation.direction_sign.values.ravel(),
        "direction_distance": distance * np.sqrt(len(ranks)),
    }


simulate = stage(AXES, run)
summarise = stage(AXES, draws, means(run, "bounded", "bounded_in_order"))


def _bounded(n: int, p: int, rng: np.random.Generator) -> float:
    """Indicator of I / 2 <= Sigma <= 2 I."""
    x = rng.standard_normal((n, p))
    spectrum = np.linalg.eigvalsh(x.T @ x / n)
    return float(spectrum[0] >= 0.5 and spectrum[-1] <= 2)


def _normal_tail(factor: float) -> float:
    """Largest ratio to beta of the exact tail beyond sigma sqrt(factor ln(2 / beta))."""
    from scipy.special import ndtr

    return (2 * ndtr(-np.sqrt(factor * np.log(2 / FAILURE))) / FAILURE).max()


def _norm_tail(factor: float) -> float:
    """Largest ratio to beta of the norm's exact tail beyond sqrt(p) + sqrt(factor ln(1 / beta))."""
    from scipy.special import gammaincc

    dimensions = np.array([1, 2, 5, 10, 100, 1000])[:, None]
    radius = np.sqrt(dimensions) + np.sqrt(factor * np.log(1 / FAILURE))
    return (gammaincc(dimensions / 2, radius**2 / 2) / FAILURE).max()


def _two_level_tail(*norms: float) -> float:
    """Largest ratio of exact tail to beta for diag(1, 1, s, s), s = 0.1 and 0.01, with these norms.

    Half the squared norm is the sum of exponential variables of means 1 and s.
    """

    def ratio(s: float, norm: float) -> float:
        radius = np.sqrt(2 + 2 * s) + np.sqrt(2 * norm * np.log(1 / FAILURE))
        tail = (np.exp(-(radius**2) / 2) - s * np.exp(-(radius**2) / (2 * s))) / (1 - s)
        return float((tail / FAILURE).max())

    return max(ratio(s, norm) for s, norm in zip((0.1, 0.01), norms, strict=True))
