"""The matrix inequalities of Appendix B beside exact second moments of Gaussian features.

All matrices are diagonal in H's eigenbasis, where second moments of Gaussian features move by
themselves: 𝔼[xxᵀAxxᵀ] = 2HAH + tr(HA)H.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field

from reproduction.experiment.datasets import variable
from reproduction.experiment.quantities import LogAxis, SampleSize
from reproduction.papers.anon2024.setting import Problem

if TYPE_CHECKING:
    import xarray as xr

PLACE = "Assumption 2.1, Definition B.4, Theorem B.5, Lemmas B.6 to B.9, B.12, B.14 and B.15"
# The squared sub-Gaussian norm of a standard normal: 𝔼 exp(z²/σ²) = 2.
GAUSSIAN_SCALE = 8 / 3
SHAPES = ("identity", "population")


class Parameters(Problem):
    """A problem, with step sizes in units of the largest that Theorem 4.2 allows."""

    relative_steps: LogAxis = Field(description="Step sizes over that largest one.")
    large_size: Annotated[SampleSize, Field(ge=2)] = Field(
        description="N at which Lemma B.15 is read for its first step."
    )

    @property
    def beta(self) -> float:
        """16 σ_z⁴."""
        return 16 * GAUSSIAN_SCALE**2

    @property
    def cap(self) -> float:
        trace = float(self.eigenvalues.sum())
        return 1 / (16 * (1 + GAUSSIAN_SCALE**2) * trace * np.log2(self.sample_size))


def theory(parameters: Parameters) -> xr.Dataset:
    """Largest ratio of the exact left side to the printed right side."""
    import xarray as xr

    lam, beta, size = parameters.eigenvalues, parameters.beta, parameters.sample_size
    steps = parameters.cap * parameters.relative_steps.values()
    printed_step = 1 / (lam.sum() * np.log(size))
    rows = [_bounds(parameters, float(eta)) for eta in steps]
    moments = _fourth_moments()
    with_square, without = _operator_identity()
    late, early = _quoted_lemma(parameters, float(steps[-1]))
    return xr.Dataset(
        {
            "gaussian_norm_error": variable(
                (), _gaussian_norm_error(), "distance of E exp(z^2/s^2) at s^2 = 8/3 from 2"
            ),
            "fourth_moment_ratio": variable(
                (), moments[0], "largest fourth moment over 16 s^4 tr(HA) H"
            ),
            "printed_moment_gap": variable(
                (), moments[1], "least eigenvalue of 16 s^2 tr(HA) A less the fourth moment"
            ),
            "operator_error": variable((), with_square, "error of Definition B.4 with eta^2"),
            "printed_operator_error": variable((), without, "error of Definition B.4 as printed"),
            "covariance_ratio": variable(
                ("noise_shape", "step_size"),
                np.array([row["covariance"] for row in rows]).T,
                "largest second moment of the iterates over the recursion of Theorem B.5",
            ),
            "average_ratio": variable(
                ("source", "step_size"),
                np.array([row["average"] for row in rows]).T,
                "risk of the average over Lemma B.6 with the exact second moments",
            ),
            "rough_ratio": variable(
                "step_size",
                [row["rough"] for row in rows],
                "largest second moment after N steps over Lemma B.7",
            ),
            "rough_denominator": variable(
                (),
                1 - beta * printed_step * lam.sum(),
                "1 - beta eta tr(H) at the step size that Lemmas B.7 and B.8 allow",
            ),
            "variance_ratio": variable(
                ("noise_shape", "step_size"),
                np.array([row["variance"] for row in rows]).T,
                "exact variance over the least bound of Lemma B.8 over k",
            ),
            "bias_ratio": variable(
                "step_size",
                [row["bias"] for row in rows],
                "exact bias over the least bound of Lemma B.9 over k",
            ),
            "product_ratio": variable(
                "noise_shape",
                [_product_ratio(parameters, name) for name in SHAPES],
                "largest second moment of a product of steps over Lemma B.12's bound",
            ),
            "inverse_ratio": variable(
                "step_size",
                [_inverse_ratio(lam, float(eta), beta) for eta in steps],
                "largest (M - HH) T^-1 A over beta tr(A) H / (1 - beta eta tr H)",
            ),
            "chain_factor": variable(
                "step_size",
                1 / (1 - beta * steps * lam.sum()),
                "the middle of Lemma B.14's chain over its end",
            ),
            "late_ratio": variable(
                (), late, "largest tr(H M_t) over 4 tr(H Sigma), Lemma B.15 at k = 0"
            ),
            "early_ratio": variable(
                (), early, "tr(H M_0) over the bound of Lemma B.15, the worst k"
            ),
            "vanishing_ridge_trace": variable(
                (),
                float(np.sum(lam / (1e-9 * lam.min() + lam))) / lam.size,
                "tr(Sigma^-1 H) as the ridge vanishes, over d",
            ),
            "growing_ridge_shape": variable(
                (),
                float(np.max(np.abs((1e9 + lam) / 1e9 - 1))),
                "largest distance of Sigma over its ridge from the identity as the ridge grows",
            ),
            "head_ratio": variable(
                (),
                max(_head_ratio(lam, float(eta), size) for eta in steps),
                "largest 1 - (1 - eta x)^N over min(1, N eta x)",
            ),
        },
        coords={
            "noise_shape": variable("noise_shape", list(SHAPES), "noise covariance"),
            "source": variable("source", ["label noise", "tree"], "where the variance comes from"),
            "step_size": variable("step_size", steps, "step size"),
        },
        attrs={"cap": parameters.cap},
    )


def _transport(moments: np.ndarray, lam: np.ndarray, eta: float) -> np.ndarray:
    shrunk = (1 - 2 * eta * lam + 2 * (eta * lam) ** 2) * moments
    return shrunk + eta**2 * lam * (moments @ lam)[..., None]


def _gaussian_norm_error() -> float:
    from scipy.integrate import quad

    def density(z: float) -> float:
        return float(np.exp(z**2 / GAUSSIAN_SCALE - z**2 / 2) / np.sqrt(2 * np.pi))

    return abs(quad(density, -np.inf, np.inf)[0] - 2)


def _fourth_moments() -> tuple[float, float]:
    """Of random matrices A, nearly of rank one in turn, that do not commute with H."""
    rng = np.random.Generator(np.random.SFC64(0))
    lam = np.array([1.0, 0.3, 0.1])
    covariance, ratio, gap = np.diag(lam), 0.0, np.inf
    for _ in range(100):
        root = rng.standard_normal((3, 3))
        matrix = root @ np.diag([1.0, *(rng.exponential(size=2) ** 4)]) @ root.T
        moment = 2 * covariance @ matrix @ covariance
        moment += np.trace(covariance @ matrix) * covariance
        whitened = moment / np.sqrt(np.outer(lam, lam))
        scale = 16 * np.trace(covariance @ matrix)
        ratio = max(ratio, float(np.linalg.eigvalsh(whitened)[-1] / (scale * GAUSSIAN_SCALE**2)))
        difference = scale * GAUSSIAN_SCALE * matrix - moment
        gap = min(gap, float(np.linalg.eigvalsh(difference)[0] / np.linalg.norm(moment, 2)))
    return ratio, gap


def _operator_identity() -> tuple[float, float]:
    """Definition B.4's identity between the operators, for a matrix that does not commute."""
    rng = np.random.Generator(np.random.SFC64(1))
    root, eta = rng.standard_normal((3, 3)), 0.1
    matrix, covariance = root @ root.T, np.diag([1.0, 0.5, 0.2])
    fourth = 2 * covariance @ matrix @ covariance + np.trace(covariance @ matrix) * covariance
    mixed = covariance @ matrix + matrix @ covariance
    left = matrix - eta * mixed + eta**2 * fourth
    shrink = np.eye(3) - eta * covariance
    fluctuation = fourth - covariance @ matrix @ covariance
    size = np.abs(left).max()
    return tuple(
        float(np.abs(shrink @ matrix @ shrink + factor * fluctuation - left).max() / size)
        for factor in (eta**2, 1.0)
    )  # type: ignore[return-value]


def _bounds(parameters: Parameters, eta: float) -> dict[str, Any]:
    """One step size: Theorem B.5 and Lemmas B.6 to B.9, with tau = psi = 1 and unit label noise."""
    from privreg.theory.shaped_noise.second_moments import private_risk, sgd_risk

    lam, size = parameters.eigenvalues, parameters.sample_size
    zeta = parameters.label_noise_std
    label = _label_moments(lam, eta, zeta, size)
    plain = sgd_risk(
        lam, target=parameters.target, label_noise_std=zeta, step_size=eta, sample_size=size
    )
    covariance, variance = [], []
    for name in SHAPES:
        shape = parameters.shape(name, eta)
        private = _tree_moments(lam, shape, eta, size)
        recursion = _recursion(parameters, shape, eta)
        covariance.append(float(np.max((private + label)[1:] / recursion[1:])))
        risk = private_risk(lam, covariance=shape, noise_std=1.0, step_size=eta, sample_size=size)
        variance.append((risk + plain.label_noise) / _variance_bound(parameters, shape, eta))
    shape = parameters.shape("population", eta)
    tree = _tree_moments(lam, shape, eta, size)
    tree_risk = private_risk(lam, covariance=shape, noise_std=1.0, step_size=eta, sample_size=size)
    return {
        "covariance": covariance,
        "average": [
            plain.label_noise / _by_averages(lam, eta, label),
            tree_risk / _by_averages(lam, eta, tree),
        ],
        "rough": _rough_ratio(parameters, eta),
        "variance": variance,
        "bias": plain.bias / _bias_bound(parameters, eta),
    }


def _label_moments(lam: np.ndarray, eta: float, zeta: float, size: int) -> np.ndarray:
    moments = [np.zeros_like(lam)]
    for _ in range(size - 1):
        moments.append(_transport(moments[-1], lam, eta) + eta**2 * zeta**2 * lam)
    return np.array(moments)


def _tree_moments(lam: np.ndarray, shape: np.ndarray, eta: float, size: int) -> np.ndarray:
    """Second moments of the iterates that the tree's noise makes, node by node."""
    total = np.zeros((size, lam.size))
    steps = size - 1
    for height in range(steps.bit_length()):
        span = 1 << height
        # A node of this height enters at its completion and is taken back one span later.
        square, with_node = np.zeros_like(lam), np.zeros_like(lam)
        path = np.zeros((size, lam.size))
        for age in range(size - 1):
            kick = -eta * (1.0 if age == 0 else -1.0 if age == span else 0.0)
            square = _transport(square, lam, eta)
            carried = (1 - eta * lam) * with_node
            square = square + 2 * kick * carried + kick**2 * shape
            with_node = carried + kick * shape
            path[age + 1] = square
        for entry in range(span, steps + 1, 2 * span):
            total[entry:] += path[1 : size - entry + 1]
    return total


def _recursion(parameters: Parameters, shape: np.ndarray, eta: float) -> np.ndarray:
    """C_t of Theorem B.5 with constants 1, without its sum over shared steps, which only adds."""
    lam, size, beta = parameters.eigenvalues, parameters.sample_size, 16 * GAUSSIAN_SCALE
    log = np.log2(size)
    lost = 1 - (1 - eta * lam) ** size
    source = parameters.label_noise_std**2 * lam + 2 * log * shape
    source = source + log * eta * beta * log * (lam @ shape) * lost
    moments = [np.zeros_like(lam)]
    for _ in range(size - 1):
        moments.append(_transport(moments[-1], lam, eta) + eta**2 * source)
    return np.array(moments)


def _by_averages(lam: np.ndarray, eta: float, moments: np.ndarray) -> float:
    """Lemma B.6: the sum over t and k of (1 - eta lambda)^(k - t) lambda, over N^2."""
    size = len(moments)
    left = size - np.arange(size)
    weights = (1 - (1 - eta * lam) ** left[:, None]) / eta
    return float(np.sum(weights * moments) / size**2)


def _rough_ratio(parameters: Parameters, eta: float) -> float:
    """Lemma B.7 for random sources."""
    rng = np.random.Generator(np.random.SFC64(0))
    lam, size, beta = parameters.eigenvalues, parameters.sample_size, parameters.beta
    lost = 1 - (1 - eta * lam) ** size
    worst = 0.0
    for _ in range(3):
        source = rng.exponential(size=lam.size) * lam ** rng.uniform(0, 1)
        exact, linear = np.zeros_like(lam), np.zeros_like(lam)
        for _ in range(size):
            exact = _transport(exact, lam, eta) + eta**2 * source
            linear = (1 - eta * lam) ** 2 * linear + eta**2 * source
        first = beta * eta**2 / (1 - beta * eta * lam.sum()) * (lost @ source) * lost
        worst = max(worst, float((exact / (first + linear)).max()))
    return worst


def _heads(parameters: Parameters, eta: float) -> list[tuple[np.ndarray, np.ndarray]]:
    """For each k: 1 then N eta lambda, and 1/lambda then N^2 eta^2 lambda."""
    lam, horizon = parameters.eigenvalues, parameters.sample_size * eta
    places = np.arange(lam.size)
    return [
        (np.where(places < k, 1.0, horizon * lam), np.where(places < k, 1 / lam, horizon**2 * lam))
        for k in range(1, lam.size + 1)
    ]


def _variance_bound(parameters: Parameters, shape: np.ndarray, eta: float) -> float:
    lam, size, beta = parameters.eigenvalues, parameters.sample_size, 16 * GAUSSIAN_SCALE
    log, least = np.log2(size), np.inf
    for head, weight in _heads(parameters, eta):
        source = parameters.label_noise_std**2 * lam + 3 * log * shape
        source = source + beta * log**2 * eta * (lam @ shape) * head
        spread = float(np.sum(head**2))
        least = min(
            least, float(beta * eta / size * (head @ source) * spread + weight @ source / size)
        )
    return least


def _bias_bound(parameters: Parameters, eta: float) -> float:
    lam, size, beta = parameters.eigenvalues, parameters.sample_size, 16 * GAUSSIAN_SCALE
    squares, least = parameters.target**2, np.inf
    for k, (head, _) in enumerate(_heads(parameters, eta), start=1):
        first = squares[:k] @ (1 / lam[:k]) / (eta * size) ** 2 + squares[k:] @ lam[k:]
        spread = k / size + size * eta**2 * np.sum(lam[k:] ** 2)
        rest = 2 * beta * (head @ squares) / (size * eta * (1 - beta * eta * lam.sum())) * spread
        least = min(least, float(first + rest))
    return least


def _product_ratio(parameters: Parameters, name: str) -> float:
    lam, size, beta = parameters.eigenvalues, parameters.sample_size, parameters.beta
    eta = 1 / (4 * beta * lam.sum() * np.log(size))
    shape = parameters.shape(name, eta)
    lost = 1 - (1 - eta * lam) ** size
    exact, linear, worst = shape, shape, 0.0
    for _ in range(size):
        exact, linear = _transport(exact, lam, eta), (1 - eta * lam) ** 2 * linear
        worst = max(worst, float((exact / (linear + 4 * beta * eta * (lam @ shape) * lost)).max()))
    return worst


def _inverse_ratio(lam: np.ndarray, eta: float, beta: float) -> float:
    """Lemma B.14: T inverted on diagonals, for random A."""
    rng = np.random.Generator(np.random.SFC64(2))
    operator = np.diag(2 * lam - 2 * eta * lam**2) - eta * np.outer(lam, lam)
    worst = 0.0
    for _ in range(50):
        source = rng.exponential(size=lam.size) ** 4
        moved = np.linalg.solve(operator, source)
        fourth = 2 * lam**2 * moved + lam * (lam @ moved)
        bound = beta * source.sum() / (1 - beta * eta * lam.sum()) * lam
        worst = max(worst, float((fourth / bound).max()))
    return worst


def _quoted_lemma(parameters: Parameters, eta: float) -> tuple[float, float]:
    """Lemma B.15 at k = 0 over all t, and for many rows at t = 0 over all k, for the identity."""
    lam, size = parameters.eigenvalues, parameters.sample_size
    shape, late = np.ones_like(lam), 0.0
    moments = shape
    for _ in range(size + 1):
        late = max(late, float(lam @ moments) / (4 * float(lam @ shape)))
        moments = _transport(moments, lam, eta)
    # The lemma's largest step size.
    many = parameters.large_size
    horizon = many / (4 * parameters.beta * lam.sum() * np.log(many))
    bounds = [4 * np.where(np.arange(lam.size) < k, 1 / horizon, lam) @ shape
              for k in range(1, lam.size + 1)]  # fmt: skip
    return late, float(lam @ shape / min(bounds))


def _head_ratio(lam: np.ndarray, eta: float, size: int) -> float:
    lost = -np.expm1(size * np.log1p(-eta * lam))
    return float((lost / np.minimum(1.0, size * eta * lam)).max())
