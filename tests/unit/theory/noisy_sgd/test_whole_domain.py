"""Risks of noisy SGD over sixty decades of every argument, in a hundred and fifty digits."""

from __future__ import annotations

from typing import Any, NamedTuple

import mpmath as mp
import numpy as np
import pytest

from privreg.schedules import ConstantRate
from privreg.theory.noisy_sgd.closed_forms import (
    isotropic_risk,
    stability_limit,
    stationary_regularised_risk,
    stationary_risk,
)
from privreg.theory.noisy_sgd.diffusion import HomogenisedSGD, RidgeRegression

SEEDS = range(150)
END = 30.0


class Case(NamedTuple):
    """An isotropic problem and the time that it runs."""

    eigenvalue: float
    rate: float
    ridge: float
    label_noise_std: float
    gradient_noise_std: float
    target: np.ndarray
    initial: np.ndarray
    time: float

    @property
    def problem(self) -> RidgeRegression:
        return RidgeRegression(
            np.full(self.target.size, self.eigenvalue),
            self.target,
            self.initial,
            label_noise_std=self.label_noise_std,
            ridge=self.ridge,
        )


def drawn(seed: int) -> Case:
    """Log-uniform over all that is documented, or next to where a setting is stable; zeros, too."""
    rng = np.random.default_rng(seed)

    def size(low: float = -END, high: float = END) -> float:
        return float(10.0 ** rng.uniform(low, high))

    value, d = size(), int(rng.integers(1, 4))
    ridge = min(float(rng.choice([0.0, size(), value * size(-20, 1)])), 1e30)
    rate = size() if rng.random() < 0.4 else min(max(size(-4, 0.3) / value, 1e-30), 1e30)
    target, initial = (size(-29, 29) * rng.standard_normal(d) for _ in range(2))
    return Case(
        value,
        rate,
        ridge,
        *(float(rng.choice([0.0, size()])) for _ in range(2)),
        np.clip(target, -1e30, 1e30),
        np.clip(rng.choice([0.0, 1.0]) * initial, -1e30, 1e30),
        min(size(-4, 2) / (rate * (value + ridge)), 1e30),
    )


def exact(case: Case) -> tuple[mp.mpf, mp.mpf | None, mp.mpf | None]:
    """Risk at the time, and the limits of the risk and the regularised risk where there are some.

    The sum of the variances is one linear equation, driven by two exponentials and a constant.
    """
    lam, rate, ridge, zeta, sigma = (mp.mpf(x) for x in case[:5])
    time, curvature = mp.mpf(case.time), lam + ridge
    share = lam / curvature
    target, start = ([mp.mpf(float(x)) for x in each] for each in (case.target, case.initial))
    bias = [(share - 1) * x for x in target]
    gap = [y - share * x for x, y in zip(target, start, strict=True)]
    energies = (
        mp.fsum(x * x for x in bias),
        2 * mp.fsum(x * y for x, y in zip(bias, gap, strict=True)),
        mp.fsum(x * x for x in gap),
    )
    speed = 2 * rate * curvature - (rate * lam) ** 2
    fresh = rate**2 * (lam * zeta**2 + sigma**2)
    variance, flow = mp.mpf(0), mp.mpf(0)
    for power, energy in enumerate(energies):
        fall = power * rate * curvature
        drive = (rate * lam) ** 2 * energy + (fresh if power == 0 else 0)
        decay = mp.exp(-fall * time)
        flow += energy * decay
        variance += drive * (
            time * decay if fall == speed else (decay - mp.exp(-speed * time)) / (speed - fall)
        )
    risk = (lam * (flow + variance) + zeta**2) / 2
    if speed <= 0:
        return risk, None, None
    variance = ((rate * lam) ** 2 * energies[0] + fresh) / speed
    limit = (lam * (energies[0] + variance) + zeta**2) / 2
    penalty = ridge / 2 * (mp.fsum((share * x) ** 2 for x in target) + variance)
    return risk, limit, limit + penalty


def close(found: Any, wanted: mp.mpf, rel: float) -> bool:
    """Below 1e-280 squares have lost digits."""
    return bool(abs(mp.mpf(float(found)) - wanted) <= rel * abs(wanted) + mp.mpf("1e-280"))


def test_risks_of_isotropic_problems_over_the_whole_domain() -> None:
    """At times that doubles can follow; a setting that they cannot is refused by name."""
    answered = dict.fromkeys(("formula", "law", "limit"), 0)
    with mp.workdps(150):
        for seed in SEEDS:
            case = drawn(seed)
            risk, limit, regularised = exact(case)
            options = {"rate": case.rate, "gradient_noise_std": case.gradient_noise_std}
            scalars = {name: getattr(case, name) for name in ("target", "initial", "eigenvalue")}
            noise = {"label_noise_std": case.label_noise_std, "ridge": case.ridge}
            try:
                found = isotropic_risk(case.time, **scalars, **noise, **options)
            except ValueError as error:
                if "double precision" not in str(error):
                    raise
            else:
                assert close(found, risk, 1e-9), (seed, case)
                answered["formula"] += 1
            problem, sigma = case.problem, case.gradient_noise_std
            try:
                law = HomogenisedSGD(
                    problem, ConstantRate(case.rate), gradient_noise_std=sigma, horizon=case.time
                )
            except ValueError as error:
                if not str(error).startswith(
                    ("horizon must", "problem, schedule and horizon must")
                ):
                    raise
            else:
                assert close(law.risk(case.time), risk, 3e-9), (seed, case)
                answered["law"] += 1
            lam = mp.mpf(case.eigenvalue)
            assert close(stability_limit(problem), 2 * (lam + case.ridge) / lam**2, 1e-12)
            if limit is not None and regularised is not None:
                assert close(stationary_risk(problem, **options), limit, 1e-9), (seed, case)
                found = stationary_regularised_risk(problem, **options)
                assert close(found, regularised, 1e-9), (seed, case)
                answered["limit"] += 1
    assert min(answered.values()) > 0.6 * len(SEEDS)


@pytest.mark.parametrize("ridge", [0.0, 1e-9, 1e-20])
def test_a_bias_far_below_the_targets_rounding_is_kept(ridge: float) -> None:
    """λx̃/(λ+δ) - x̃ of doubles is a rounding error, 1e55 times what it should be at worst."""
    problem = RidgeRegression([1.3, 0.0], [3e5, 2.0], [1.0, 7.0], ridge=ridge)
    wanted = [-ridge * 3e5 / 1.3, 5.0 if ridge == 0 else -2.0]
    np.testing.assert_allclose(problem.bias, wanted, rtol=1e-8)
    found = stationary_risk(problem, rate=0.1, gradient_noise_std=0.0)
    gain = 0.1 * 1.3 / (2 * 2)
    assert found == pytest.approx(0.5 * 1.3 * wanted[0] ** 2 / (1 - gain), rel=1e-8)
