"""Parts of the theory of noisy SGD over their whole documented domain, in many digits."""

from __future__ import annotations

from math import inf

import mpmath as mp
import numpy as np
import pytest

from privreg.theory.noisy_sgd.closed_forms import (
    stability_limit,
    stationary_regularised_risk,
    stationary_risk,
)
from privreg.theory.noisy_sgd.diffusion import RidgeRegression
from privreg.theory.noisy_sgd.discrete_moments import mean_risk
from privreg.theory.noisy_sgd.hidden_state import (
    hidden_state_divergence,
    shuffled_hidden_state_loss,
)
from privreg.theory.noisy_sgd.second_moment import second_moment_basis
from privreg.theory.noisy_sgd.shuffled_position import (
    paper_shuffled_loss_of_iterates,
    shuffled_loss,
)

from ..draws import LEAST, Exact, near, numbers, size

SEEDS = range(150)


def spread(rng: np.random.Generator, count: int, low: float, high: float) -> np.ndarray:
    """Numbers of one size or of many, now and then zero."""
    values = size(rng, low, high) * 10.0 ** (-rng.choice([0, 1, 20, 200]) * rng.random(count))
    return values * (rng.random(count) > 0.1)


def drawn_problem(rng: np.random.Generator) -> RidgeRegression:
    count = int(rng.integers(1, 4))
    values = spread(rng, count, *rng.choice([[-30, 30], [-300, -200]]))
    ridge = float(rng.choice([0.0, size(rng, -300, 30), values.max() * size(rng, -20, 1)]))
    weights = size(rng, -29, 28) * 10.0 ** (-rng.choice([0, 200]) * rng.random(count))
    weights[0] = max(weights[0], 1e-29)
    return RidgeRegression(
        values,
        np.clip(rng.standard_normal(count) * spread(rng, count, -29, 29), -1e30, 1e30),
        np.clip(rng.standard_normal(count) * spread(rng, count, -29, 29), -1e30, 1e30),
        label_noise_std=float(rng.choice([0.0, size(rng, -30, 30)])),
        ridge=min(ridge, 1e30),
        multiplicities=weights if rng.integers(2) else None,
    )


class ExactProblem:
    """A problem's own numbers without rounding."""

    def __init__(self, problem: RidgeRegression) -> None:
        self.values, self.weights, self.target, self.start = (
            numbers(getattr(problem, name))
            for name in ("eigenvalues", "multiplicities", "target", "initial")
        )
        self.ridge, self.zeta = mp.mpf(problem.ridge), mp.mpf(problem.label_noise_std)
        self.slopes = [value + self.ridge for value in self.values]
        self.rest = [
            v * x / s if s else y
            for v, s, x, y in zip(self.values, self.slopes, self.target, self.start, strict=True)
        ]

    def risk(self, point: list[Exact], variance: list[Exact]) -> Exact:
        parts = zip(self.weights, self.values, point, self.target, variance, strict=True)
        return (mp.fsum(w * v * ((p - x) ** 2 + u) for w, v, p, x, u in parts) + self.zeta**2) / 2

    def penalty(self, point: list[Exact], variance: list[Exact]) -> Exact:
        parts = zip(self.weights, point, variance, strict=True)
        return self.ridge / 2 * mp.fsum(w * (p * p + u) for w, p, u in parts)


def test_problems() -> None:
    """The minimiser of eigenvalues and penalties of 1e-300 was 0, not a share of the target."""
    with mp.workdps(700):
        for seed in SEEDS:
            rng = np.random.default_rng(seed)
            problem = drawn_problem(rng)
            exact = ExactProblem(problem)
            d = len(exact.values)
            assert near(problem.minimiser, exact.rest, 1e-15), seed
            bias = [r - x for r, x in zip(exact.rest, exact.target, strict=True)]
            assert near(problem.bias, bias, 1e-15), seed
            point, variance = spread(rng, d, -100, 99), spread(rng, d, -100, 100)
            law = numbers(point), numbers(variance)
            # The distance of two points has lost what they share, a weighted eigenvalue what lies
            # below the least double.
            reach = [abs(x) + abs(y) for x, y in zip(law[0], exact.target, strict=True)]
            lost = LEAST + mp.mpf("1e-15") * exact.risk([2 * x for x in reach], law[1])
            lost += mp.mpf("1e-323") * mp.fsum(
                x * x + u for x, u in zip(reach, law[1], strict=True)
            )
            assert near(problem.risk(point, variance), exact.risk(*law), 1e-13, lost), seed
            assert near(problem.penalty(point, variance), exact.penalty(*law), 1e-13), seed
            length = min(size(rng, -20, 2) / max(problem.curvatures.max(), 1e-80), 1e100)
            parts = zip(exact.rest, exact.start, exact.slopes, strict=True)
            wanted = [r + mp.exp(-s * mp.mpf(length)) * (y - r) for r, y, s in parts]
            # Beside the larger of the start and the minimiser once the flow has left its start.
            sizes = [
                mp.mpf("1e-9") * abs(w) + mp.mpf("1e-15") * abs(y)
                for w, y in zip(wanted, exact.start, strict=True)
            ]
            for found, value, lost in zip(
                problem.gradient_flow(length), wanted, sizes, strict=True
            ):
                assert near(found, value, 0, lost), seed


def test_stationary_risks() -> None:
    """Weights of sum 1e-310 gave NaN, and a stability limit of 0."""
    answered = 0
    with mp.workdps(700):
        for seed in SEEDS:
            rng = np.random.default_rng(seed)
            problem = drawn_problem(rng)
            exact = ExactProblem(problem)
            d = mp.fsum(exact.weights)
            pairs = list(zip(exact.weights, exact.values, exact.slopes, strict=True))
            trace = mp.fsum(w * v * v / s for w, v, s in pairs if v)
            limit = stability_limit(problem)
            if trace == 0:
                assert limit == inf
                continue
            assert near(limit, 2 * d / trace, 1e-12) or limit > 1e300, seed
            share = float(rng.choice([rng.uniform(0, 1), size(rng, -30, 2)]))
            rate = min(float(limit) * share, 1e30)
            sigma = float(rng.choice([0.0, size(rng, -30, 30)]))
            gain = mp.mpf(rate) * trace / (2 * d)
            found = stationary_risk(problem, rate=rate, gradient_noise_std=sigma)
            if gain >= 1:
                assert found == inf
                continue
            noise = mp.mpf(sigma) ** 2 * mp.mpf(rate) / (4 * d)
            noise *= mp.fsum(w * v / s for w, v, s in pairs if v)
            zero = [mp.mpf(0)] * len(pairs)
            wanted = (exact.risk(exact.rest, zero) + noise) / (1 - gain)
            assert near(found, wanted, mp.mpf("1e-14") / (1 - gain) + mp.mpf("1e-12")), seed
            if exact.ridge:
                fresh = [
                    mp.mpf(rate) * (2 * wanted * v + mp.mpf(sigma) ** 2) / (2 * d * s)
                    for _, v, s in pairs
                ]
                wanted += exact.penalty(exact.rest, fresh)
                found = stationary_regularised_risk(problem, rate=rate, gradient_noise_std=sigma)
                rel = mp.mpf("1e-14") / (1 - gain) + mp.mpf("1e-12")
                assert near(found, wanted, rel) or wanted > 1e300, seed
            answered += 1
    assert answered > 60


def test_weights_of_no_size_are_refused() -> None:
    with pytest.raises(ValueError, match="multiplicities must have a sum"):
        RidgeRegression([0.0], [1.0], [0.0], multiplicities=[1e-310])


def test_the_reflection_of_a_mean() -> None:
    """Squares of 1e-162 have no digits: the basis was far from orthogonal."""
    with mp.workdps(400):
        for seed in SEEDS:
            rng = np.random.default_rng(seed)
            mean = rng.standard_normal(int(rng.integers(1, 5))) * size(rng, -300, 150)
            std = float(rng.choice([0.0, size(rng, -320, 150)]))
            basis = second_moment_basis(mean, std=std)
            square = mp.fsum(x * x for x in numbers(mean))
            values = [mp.mpf(std) ** 2 + (square if i == 0 else 0) for i in range(mean.size)]
            assert near(basis.eigenvalues, values, 1e-14), seed
            turned = basis.coordinates(np.eye(mean.size))
            np.testing.assert_allclose(turned @ turned.T, np.eye(mean.size), atol=1e-14)
            length = float(mp.sqrt(square))
            expected = np.append(length, np.zeros(mean.size - 1))
            np.testing.assert_allclose(basis.coordinates(mean), expected, atol=4e-14 * length)


def test_discrete_mean_risk() -> None:
    """Means and variances apart, where the function carries second moments."""
    right = 0
    with mp.workdps(100):
        for seed in SEEDS:
            rng = np.random.default_rng(seed)
            problem = drawn_problem(rng)
            exact = ExactProblem(problem)
            top = float(max(problem.curvatures.max(), 1e-30))
            steps = np.clip(size(rng, -20, 0.3) / top * rng.uniform(0, 1, 4), 0, 1e30)
            sigma = float(rng.choice([0.0, size(rng, -30, 30)]))
            kurtosis = float(rng.choice([3.0, 1.8, 1 + size(rng, -10, 30)]))
            options = {"gradient_noise_std": sigma, "kurtosis": kurtosis}
            try:
                found = mean_risk(problem, steps, **options)
            except ValueError as error:
                if "double precision" not in str(error):
                    raise
                continue
            mean = [y - x for x, y in zip(exact.target, exact.start, strict=True)]
            variance = [mp.mpf(0)] * len(mean)
            largest = mp.mpf(0)
            for k in range(5):
                second = [m * m + u for m, u in zip(mean, variance, strict=True)]
                pull = mp.fsum(
                    w * v * q for w, v, q in zip(exact.weights, exact.values, second, strict=True)
                )
                wanted = (pull + exact.zeta**2) / 2
                # Second moments keep the digits of what they were before they fell.
                largest = max(largest, wanted)
                lost = mp.mpf("1e-12") * (largest if kurtosis < 2 or exact.ridge else wanted)
                assert near(found[k], wanted, 0, lost + mp.mpf("1e-280")), (seed, k)
                if k == 4:
                    break
                step = mp.mpf(float(steps[k]))
                for i, v in enumerate(exact.values):
                    keep = 1 - step * exact.slopes[i]
                    variance[i] = (
                        keep**2 * variance[i]
                        + (step * v) ** 2 * (mp.mpf(kurtosis) - 2) * second[i]
                        + step**2 * (v * (pull + exact.zeta**2) + mp.mpf(sigma) ** 2)
                    )
                    mean[i] = keep * mean[i] - step * exact.ridge * exact.target[i]
            right += 1
    assert right > 100


def test_losses_of_mixtures() -> None:
    """A position of probability 1e-12 left its loss four digits."""
    with mp.workdps(60):
        for seed in range(400):
            rng = np.random.default_rng(seed)
            count = int(rng.integers(0, 5))
            order = 1 + size(rng, *rng.choice([[-14, 100], [-2, 2]]))
            losses = size(rng, -20, 3) / (order - 1) * 10.0 ** (-8 * rng.random(count))
            losses = losses * rng.choice([0.0, 1.0, 1.0, 1.0], count)
            horizon = size(rng, -300, 300)
            weights = rng.random(count) * 10.0 ** (-rng.choice([0, 1, 12]) * rng.random(count))
            weights *= horizon / max(weights.sum(), 1e-300) * rng.choice([1.0, 0.5, 1e-12])
            weights = weights * (rng.random(count) > 0.1)
            whole, power = mp.mpf(horizon), mp.mpf(order) - 1
            shares = [x / whole for x in numbers(weights)]
            gains = [mp.expm1(power * x) for x in numbers(losses)]
            gain = mp.fsum(p * x for p, x in zip(shares, gains, strict=True))
            wanted = mp.log1p(gain) / power
            found = shuffled_loss(losses, weights, horizon=horizon, order=order)
            assert near(found, wanted, 1e-12), seed
            rest = 1 - mp.fsum(shares)
            if count and rest > 1e-3:
                inner = mp.fsum(p * (1 + x) for p, x in zip(shares, gains, strict=True))
                found = paper_shuffled_loss_of_iterates(
                    losses, weights, horizon=horizon, order=order
                )
                if inner == 0:
                    assert found == -inf
                    continue
                parts = mp.log(rest), mp.log(inner)
                lost = mp.mpf("1e-12") * sum(map(abs, parts)) / power
                assert near(found, sum(parts) / power, 0, lost + mp.mpf("1e-13") / power), seed


def test_a_certain_loss_is_that_of_its_position() -> None:
    found = shuffled_loss([[inf, 0.0], [3.0, 800.0]], [1.0, 1.0], horizon=2.0, order=2.0)
    assert found[0] == inf
    assert found[1] == pytest.approx(800 - np.log(2), rel=1e-14)


def test_hidden_state_bounds() -> None:
    """Numbers of steps beyond 2^63 wrapped around, and gave -2."""
    with mp.workdps(120):
        for seed in range(300):
            rng = np.random.default_rng(seed)
            ell, later = (int(size(rng, 0, 15.9)) - 1 for _ in range(2))
            step = size(rng, -30, 30)
            convex = min(rng.random() * size(rng, -30, 0) / step, 1e30)
            convex = convex * float(rng.choice([0.0, 1.0, 1 / (1 + later)]))
            options = {
                "clip_norm": size(rng, -30, 30),
                "gradient_noise_std": size(rng, -30, 30),
                "step_size": step,
                "strong_convexity": convex,
                "order": 1 + size(rng, -10, 100),
            }
            if step * convex >= 1:
                continue
            c, sigma, eta, lam, order = numbers(list(options.values()))
            square = (1 - eta * lam) ** 2

            def total(terms: int, square: Exact = square) -> Exact:
                return mp.mpf(terms) if square == 1 else (1 - square**terms) / (1 - square)

            front = order * (2 * c) ** 2 / (2 * sigma**2) * square**later
            # The logarithm of the decay is rounded, and multiplied by the steps.
            rel = mp.mpf("1e-13") * (1 + abs(mp.log(front + mp.mpf("1e-400"))))
            for bound, share in (
                ("reconstruction", total(ell + 1) / total(ell + later + 1)),
                ("contraction", 1 / total(later + 1)),
            ):
                found = hidden_state_divergence(ell, later, bound=bound, **options)
                assert near(found, front * share, rel), (seed, bound)
    with pytest.raises(ValueError, match="position must be"):
        hidden_state_divergence(2**62, 2**62, **options)


def test_shuffled_hidden_state_bounds() -> None:
    with mp.workdps(60):
        for seed in range(40):
            rng = np.random.default_rng(seed)
            records = int(rng.integers(1, 30))
            count = int(rng.integers(0, records + 1))
            order, noise = 1 + size(rng, -3, 3), size(rng, -2, 5)
            step, convex = 0.3, rng.uniform(0, 3)
            square = (1 - mp.mpf(step) * mp.mpf(convex)) ** 2
            gain = mp.mpf(0)
            for later in range(count):
                loss = mp.mpf(order) * 2 / mp.mpf(noise) ** 2 * square**later
                loss /= mp.fsum(square**j for j in range(later + 1))
                gain += mp.expm1((mp.mpf(order) - 1) * loss) / records
            found = shuffled_hidden_state_loss(
                [count],
                records=records,
                clip_norm=1.0,
                gradient_noise_std=noise,
                step_size=step,
                strong_convexity=convex,
                order=order,
                bound="contraction",
            )
            assert near(found, [mp.log1p(gain) / (mp.mpf(order) - 1)], 1e-11), seed
