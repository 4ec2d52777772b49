"""Identities of the definitions and proofs, printed and corrected, on a law of few records."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from pydantic import Field

from reproduction.engine import quantities as q
from reproduction.engine.parameters import Strict
from reproduction.engine.recipe import below, close, identity, per, stage, stated

PLACE = "Theorem 3.1, Lemma A.1, equations (29), (30) and (37)"
FEW = "six dimensions, eight feature vectors with label noise of either sign"


class Parameters(Strict):
    """Points at which the identities are evaluated."""

    dimension: q.Plural[q.Dimension] = Field(description="Dimension d.")
    features: q.Plural[q.Count] = Field(description="Feature vectors, each with two labels.")
    points: q.Count = Field(description="Iterates at which the identities are evaluated.")
    rate: q.Positive = Field(description="Scaled rate gamma.")
    gradient_noise_std: q.PositiveDeviation = Field(description="Gradient noise sigma.")
    ridge: q.NonNegative = Field(description="Penalty delta.")


@dataclass(frozen=True)
class _Law:
    """Equally likely records: each feature vector with label noise of either sign."""

    features: np.ndarray
    label_noise: np.ndarray
    target: np.ndarray

    @property
    def moment(self) -> np.ndarray:
        return self.features.T @ self.features / len(self.features)

    @property
    def label_noise_square(self) -> float:
        return float(np.mean(self.label_noise**2))

    def risk(self, error: np.ndarray) -> float:
        return float(np.mean((self.features @ error - self.label_noise) ** 2) / 2)


@dataclass(frozen=True)
class _Quadratic:
    """q(v) = v' H v / 2 + w' v."""

    hessian: np.ndarray
    linear: np.ndarray

    def __call__(self, point: np.ndarray) -> np.ndarray:
        """Values of q, (..., d) -> (...)."""
        return ((point @ self.hessian) * point).sum(axis=-1) / 2 + point @ self.linear

    def gradient(self, point: np.ndarray) -> np.ndarray:
        return self.hessian @ point + self.linear


# Parameters, law, an iterate's distance to the ground truth, a quadratic, and a displacement.
_Case = tuple[Parameters, _Law, np.ndarray, _Quadratic, np.ndarray]


def _cases(parameters: Parameters) -> Iterator[_Case]:
    rng, dimension = np.random.Generator(np.random.SFC64(1)), parameters.dimension
    half = rng.standard_normal((parameters.features, dimension))
    noise = np.abs(rng.standard_normal(parameters.features))
    target = rng.standard_normal(dimension) / np.sqrt(dimension)
    law = _Law(np.concatenate([half, half]), np.concatenate([noise, -noise]), target)
    for _ in range(parameters.points):
        error = rng.standard_normal(dimension)
        root = rng.standard_normal((dimension, dimension))
        form = _Quadratic((root + root.T) / 2, rng.standard_normal(dimension))
        yield parameters, law, error, form, rng.standard_normal(dimension)


def _largest(function: Callable[[_Case], dict]) -> Callable[[Parameters], dict]:
    """The largest value of each quantity over all cases."""

    def over_cases(parameters: Parameters) -> dict:
        found = [function(case) for case in _cases(parameters)]
        return {name: max(each[name] for each in found) for name in found[0]}

    return over_cases


@per(
    decomposition_printed=stated(
        "distance of Lemma A.1's sum to the increment, divided by the largest sampling term",
        where="Lemma A.1",
        statement="A quadratic's increment along noisy SGD is the sum of Lemma A.1's six terms.",
        check=below(1e-10),
        id="doob-decomposition-as-printed",
        ours=[FEW, "a quadratic with an indefinite Hessian"],
        finding="doob-decomposition-counts-a-term-twice",
        corrected={
            "holds_with": "no square of the sampling term's mean in the predictable error",
            "evidence": {"variable": "decomposition_corrected"},
            "check": below(1e-12),
        },
    ),
    decomposition_corrected="largest distance of Lemma A.1's sum, without the squared mean of the "
    "sampling term, to the increment, divided by the largest sampling term",
)
@_largest
def decomposition(case: _Case) -> dict:
    """Lemma A.1 for each record and each value of the private noise, axes (record, noise)."""
    parameters, law, error, form, _ = case
    dimension, rate = parameters.dimension, parameters.rate
    pull = parameters.ridge / dimension * (error + law.target)
    sample = (law.features @ error - law.label_noise)[:, None] * law.features / dimension
    # Equally likely points whose moments up to the third are a standard normal's.
    axes = np.sqrt(dimension) * np.eye(dimension)
    noise = parameters.gradient_noise_std / dimension * np.concatenate([axes, -axes])
    step = pull + sample[:, None] + noise
    increment = form(error - rate * step) - form(error)
    mean = sample.mean(axis=0)
    squares = np.einsum("ij,jk,ik->i", sample, form.hessian, sample)
    gradient, trace = form.gradient(error), np.trace(form.hessian)
    linear = (sample - mean) @ (rate**2 * form.hessian @ pull - rate * gradient)
    quadratic = rate**2 / 2 * (squares - squares.mean())
    private_linear = (rate**2 * (pull + sample) @ form.hessian - rate * gradient) @ noise.T
    variance = parameters.gradient_noise_std**2 / dimension**2
    energy = np.einsum("ij,jk,ik->i", noise, form.hessian, noise)
    private_quadratic = rate**2 / 2 * (energy - variance * trace)
    level = _trace(law.moment, form.hessian) * (error @ law.moment @ error + law.label_noise_square)
    leading = -rate * gradient @ (pull + law.moment @ error / dimension)
    leading += rate**2 / 2 * (level / dimension**2 + variance * trace)
    square = mean @ form.hessian @ mean
    predictable = pull @ form.hessian @ (pull + 2 * mean) + squares.mean()
    rest = rate**2 / 2 * (predictable - level / dimension**2)
    data = (linear + quadratic)[:, None]
    apart = increment - (leading + rest + data + private_linear + private_quadratic)
    scale = rate**2 / 2 * np.abs(squares).max()
    return {
        "decomposition_printed": np.abs(apart - rate**2 / 2 * square).max() / scale,
        "decomposition_corrected": np.abs(apart).max() / scale,
    }


@per(
    predictable_error=stated(
        "largest relative distance of (30) and (29) to Lemma A.1, for a step of 1/d",
        where="Appendix A, equations (29) and (30)",
        statement="The leading predictable part of noisy SGD, (30), is that of the diffusion (29), "
        "with a step as the time 1/d.",
        check=below(1e-12),
        wrong={"With all of the private noise, not half.": "predictable_error_without_half"},
        id="predictable-parts-agree",
        ours=[FEW, "a quadratic with an indefinite Hessian"],
    ),
    predictable_error_without_half="largest relative distance of (30) to Lemma A.1 with the whole "
    "private noise in place of half of it",
)
@_largest
def predictable_error(case: _Case) -> dict:
    """The leading predictable term of Lemma A.1, of (30), and of the diffusion's (29) times 1/d."""
    parameters, law, error, form, _ = case
    dimension, rate, ridge = parameters.dimension, parameters.rate, parameters.ridge
    private = parameters.gradient_noise_std**2
    gradient, trace = form.gradient(error), np.trace(form.hessian)
    curved = _trace(law.moment, form.hessian)
    inner = (law.moment + ridge * np.eye(dimension)) @ error + ridge * law.target
    energy = error @ law.moment @ error + law.label_noise_square
    lemma = -rate / dimension * gradient @ inner + rate**2 / (2 * dimension**2) * (
        curved * energy + private * trace
    )
    # The gradient of R and the risk from the records themselves, not from their moments.
    residuals = law.features @ error - law.label_noise
    descent = residuals @ law.features / len(residuals) + ridge * (error + law.target)
    printed = -rate / dimension * gradient @ descent + rate**2 / dimension**2 * (
        law.risk(error) * curved + private * trace / 2
    )
    spread = (2 * law.risk(error) * law.moment + private * np.eye(dimension)) / dimension
    diffusion = -rate * gradient @ descent + rate**2 / 2 * _trace(spread, form.hessian)
    whole = printed + rate**2 / dimension**2 * private * trace / 2
    errors = abs(printed / lemma - 1.0), abs(diffusion / dimension / lemma - 1.0)
    return {
        "predictable_error": max(errors),
        "predictable_error_without_half": abs(whole / lemma - 1.0),
    }


@per(
    expansion_printed=stated(
        "largest relative distance of (37) to the risk",
        where="Appendix B, equation (37)",
        statement="The last term of the risk's expansion about the gradient flow is half the "
        "squared norm of Sigma^(-1/2) times the difference from the flow.",
        check=below(1e-10),
        id="expansion-as-printed",
        ours=[FEW],
        finding="expansion-has-an-inverse-root",
        corrected={
            "holds_with": "Sigma^(1/2) in the last term",
            "evidence": {"variable": "expansion_corrected"},
            "check": below(1e-12),
        },
    ),
    expansion_corrected="largest relative distance of (37) to the risk, with the root of the "
    "second moment in place of its inverse",
)
@_largest
def expansion(case: _Case) -> dict:
    """P at the flow plus a displacement, expanded as in (37)."""
    _, law, flow, _, displacement = case
    whole = law.risk(flow + displacement)
    start = law.risk(flow) + (law.moment @ flow) @ displacement

    def apart(moment: np.ndarray) -> float:
        return abs((start + displacement @ moment @ displacement / 2) / whole - 1.0)

    inverse = np.linalg.pinv(law.moment, hermitian=True)
    return {"expansion_printed": apart(inverse), "expansion_corrected": apart(law.moment)}


@identity(
    where="Section 3, text after Theorem 3.1",
    kind="printed number",
    printed=["1/24"],
    statement="The constant c_* must be less than 1/24 for the bound of Theorem 3.1 to vanish.",
    ours=["n = d ln(d) / c_0, the largest that the theorem allows", "sigma = 1, d = 1e100, 1e150"],
    check=close(1 / 24, absolute=1e-9),
    wrong={"Less than 1/18, as without the exponential.": close(1 / 18, absolute=1e-9)},
    note="The check is on the c_* at which the right side of (2) has the log-log slope 0 in d.",
)
def exponent_threshold() -> float:
    """c_* at which the log-log slope in d of the bound (2) changes sign, sigma = 1."""
    from scipy.optimize import brentq

    def slope(exponent: float) -> float:
        logs = np.log(10.0) * np.array([100.0, 150.0])
        values = [log / 8 + np.log(_terms(log, exponent, 0.0).sum()) for log in logs]
        return float((values[1] - values[0]) / (logs[1] - logs[0]))

    return float(brentq(slope, 0.0, 0.2, xtol=1e-12))


@identity(
    id="negligible-noise",
    where="Section 3, text after Theorem 3.1",
    kind="prose",
    statement="The terms with sigma are negligible provided sigma = o(d^(9 c_* / 2)).",
    ours=["c_* = 0.02"],
    check=close(4.5, absolute=1e-9),
    wrong={"Provided sigma = o(d^(7 c_*)).": close(7.0, absolute=1e-9)},
    note="The check is on the largest such power of d, divided by c_*. The term in sigma^2 "
    "decides; the linear term alone would allow d^(7 c_*).",
)
def noise_power_over_exponent() -> float:
    """Largest power of d for sigma, over c_*, at which the first term of (2) leads."""
    from scipy.optimize import brentq

    exponent = 0.02

    def lead(power: float) -> float:
        first, *others = np.log(_terms(1.0, exponent, power))
        return float(first - max(others[0] - np.log(2.0), others[1]))

    return float(brentq(lead, 0.0, 10.0 * exponent, xtol=1e-14)) / exponent


theory = stage({}, blocks_of=globals())


def _terms(log: float, exponent: float, power: float) -> np.ndarray:
    """The three terms of (2) at d = exp(log) and sigma = d^power."""
    powers = np.array([-0.5 + 9 * exponent, -0.5 + 2 * exponent + power, -0.5 + 2 * power])
    return np.array([1.0, 2.0, 1.0]) * np.exp(log * powers)


def _trace(first: np.ndarray, second: np.ndarray) -> float:
    """Trace of a product of symmetric matrices."""
    return float(np.sum(first * second))
