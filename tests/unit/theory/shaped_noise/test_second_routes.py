"""Shaped noise at random inputs: exact sums, dense matrices and fractions."""

from __future__ import annotations

from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest

from privreg.theory.shaped_noise.bounds import (
    designed_bound,
    fitted_exponent,
    general_bound,
    identity_bound,
    minimise_over_step_size,
)
from privreg.theory.shaped_noise.decay import (
    ExponentialDecay,
    FiniteDecay,
    PowerLawDecay,
    effective_dimension,
)
from privreg.theory.shaped_noise.privacy_error import (
    independent_factor,
    privacy_error,
    toeplitz_factor,
    tree_factor,
)
from privreg.theory.shaped_noise.rates import (
    LinearFraction,
    designed_exponent,
    designed_threshold,
    exponential_exponents,
    identity_exponent,
    identity_threshold,
    nonprivate_exponent,
)
from privreg.theory.shaped_noise.second_moments import private_risk, sgd_risk

SEEDS = range(10)


# Power laws


@pytest.mark.parametrize("seed", SEEDS)
def test_a_power_law_has_the_sums_of_its_eigenvalues(seed: int) -> None:
    """Cutoffs in whole numbers where they are exact, tails by mpmath's zeta function."""
    rng = np.random.default_rng(seed)
    with mp.workdps(40):
        for _ in range(40):
            r = float(rng.choice([1 + 10.0 ** rng.uniform(-6, 0), 10.0 ** rng.uniform(0.2, 3)]))
            decay = PowerLawDecay(r)
            a = 10.0 ** rng.uniform(-2, min(300, 15 * r))
            if rng.random() < 0.5:
                # Next to where the cutoff jumps.
                k = int(rng.integers(1, 2000))
                a = float(mp.mpf(k) ** r) if r * np.log10(k) < 300 else a
                a = float(np.nextafter(a, rng.choice([0.0, np.inf])))
            k = int(mp.floor(mp.mpf(a) ** (1 / mp.mpf(r))))
            cutoff = int(decay.cutoff(a))
            if k < 10**6 and mp.mpf(k) ** r != a:
                near = abs(mp.mpf(max(cutoff, k)) ** r / a - 1) < 1e-13
                # (k + 1)^r is rounded: next to a jump either side is right to a rounding of a.
                assert cutoff == k or near, (r, a)
            wanted = cutoff + mp.mpf(a) * mp.zeta(mp.mpf(r), cutoff + 1)
            assert float(effective_dimension(decay, a)) == pytest.approx(float(wanted), rel=1e-10)
            assert decay.trace == pytest.approx(float(mp.zeta(mp.mpf(r))), rel=1e-13)
            assert decay.squared_trace == pytest.approx(float(mp.zeta(2 * mp.mpf(r))), rel=1e-13)


@pytest.mark.parametrize("a", [26.999999999999996, 27.0, 27.000000000000004])
def test_a_cutoff_is_exact_next_to_a_cube(a: float) -> None:
    assert PowerLawDecay(3.0).cutoff(a) == (2.0 if a < 27 else 3.0)


@pytest.mark.parametrize("power", [2.0, 3.0, 5.0, 7.0])
def test_a_cutoff_below_a_perfect_power_is_the_root_less_one(power: float) -> None:
    roots = np.arange(2.0, 200.0)
    roots = roots[roots**power < 2**52]
    decay = PowerLawDecay(power)
    np.testing.assert_array_equal(decay.cutoff(np.nextafter(roots**power, 0)), roots - 1)
    np.testing.assert_array_equal(decay.cutoff(roots**power), roots)


@pytest.mark.parametrize(
    ("r", "a"),
    [
        *((r, 10.0**e) for r in (1.5, 2.0, 4.0) for e in (-200, -3, 0, 2, 5)),
        *((50.0, 10.0**e) for e in (-300, 0, 100, 200, 280)),
        (60.0, 1e300),
        (300.0, 1e300),
        (1e5, 1e300),
        (1e10, 5.0),
    ],
)
def test_shares_of_a_power_law_add_up(r: float, a: float) -> None:
    found = PowerLawDecay(r).shaped_trace(a)
    with mp.workdps(30):
        power, horizon = mp.mpf(r), mp.mpf(a)
        # A head by terms, and the tail's geometric series of zeta functions where aλ < 1/8.
        head = int((8 * horizon) ** (1 / power)) + 1
        wanted = sum(1 / (1 + mp.mpf(i) ** power / horizon) for i in range(1, min(head, 2000) + 1))
        if head <= 2000:
            first = horizon * mp.mpf(head + 1) ** -power
            for order in range(1, 40):
                s = order * power
                scaled = sum((1 + mp.mpf(i) / (head + 1)) ** -s for i in range(60))
                end = mp.mpf(head + 61)
                rest = (end / (head + 1)) ** -s * (
                    end / (s - 1)
                    + mp.mpf(1) / 2
                    + s / (12 * end)
                    - s * (s + 1) * (s + 2) / (720 * end**3)
                )
                wanted -= (-first) ** order * (scaled + rest)
            assert found == pytest.approx(float(wanted), rel=1e-9)
        else:
            # Bracketed by the integral: terms fall.
            assert found >= float(wanted)
        dimension = float(effective_dimension(PowerLawDecay(r), a))
        assert found <= dimension * (1 + 1e-9)
        assert dimension <= 2 * found * (1 + 1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_other_decays_have_the_sums_of_their_eigenvalues(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(20):
        values = 10.0 ** rng.uniform(-150, 150, int(rng.integers(1, 8)))
        values[rng.random(values.size) < 0.2] = 0.0
        a = 10.0 ** rng.uniform(-149, 149)
        exact = sorted((Fraction(x) for x in values.tolist()), reverse=True)
        decay, horizon = FiniteDecay(values), Fraction(a)
        share = sum(min(Fraction(1), horizon * x) for x in exact)
        assert float(effective_dimension(decay, a)) == pytest.approx(float(share), rel=1e-12)
        shaped = sum(horizon * x / (1 + horizon * x) for x in exact)
        assert decay.shaped_trace(a) == pytest.approx(float(shaped), rel=1e-12)
        assert decay.trace == pytest.approx(float(sum(exact)), rel=1e-12)
        squares = sum(x * x for x in exact)
        assert decay.squared_trace == pytest.approx(float(squares), rel=1e-12, abs=1e-290)
        a = 10.0 ** rng.uniform(-300, 300)
        with mp.workdps(30):
            terms = [mp.mpf(a) * mp.exp(-i) for i in range(1, 800)]
            decay = ExponentialDecay()
            wanted = float(sum(min(1, x) for x in terms))
            assert float(effective_dimension(decay, a)) == pytest.approx(wanted, rel=1e-11)
            shaped = float(sum(x / (1 + x) for x in terms))
            assert decay.shaped_trace(a) == pytest.approx(shaped, rel=1e-11)


# Factors of mean gradients


def drawn_shrinkage(rng: np.random.Generator) -> float:
    choices = [
        0.0,
        1.0,
        rng.random(),
        10.0 ** rng.uniform(-320, 0),
        1 - 10.0 ** rng.uniform(-15, 0),
    ]
    return float(rng.choice(choices))


def prefix_nodes(count: int) -> list[tuple[int, int]]:
    """Intervals of whole powers of two whose sums make up the first `count` steps."""
    nodes, start = [], 0
    for height in reversed(range(count.bit_length())):
        if count >> height & 1:
            nodes.append((start, height))
            start += 1 << height
    return nodes


@pytest.mark.parametrize("seed", SEEDS)
def test_factors_are_those_of_the_dense_map(seed: int) -> None:
    """The average's weight on each draw, summed step by step in exact arithmetic."""
    rng = np.random.default_rng(seed)
    for _ in range(6):
        size, x = int(rng.integers(1, 40)), drawn_shrinkage(rng)
        rho = 1 - Fraction(x)
        beta = rng.standard_normal(size) * 10.0 ** rng.uniform(-20, 20)
        # A kick at step t (after the t-th row) enters iterates t, ..., N - 1.
        reach = [sum((rho**k for k in range(size - t)), Fraction(0)) for t in range(size + 1)]
        independent = sum((reach[t] ** 2 for t in range(1, size)), Fraction(0))
        found = independent_factor(x, sample_size=size)
        assert float(found) == pytest.approx(float(independent), rel=1e-12)
        weights: dict[tuple[int, int], Fraction] = {}
        for t in range(1, size):
            for node in prefix_nodes(t):
                # Node in use at t: the prefix sum enters iterate t through its increments.
                weights[node] = weights.get(node, Fraction(0)) + rho ** (size - 1 - t)
        tree = sum((w * w for w in weights.values()), Fraction(0))
        assert float(tree_factor(x, sample_size=size)) == pytest.approx(float(tree), rel=1e-12)
        total = Fraction(0)
        for source in range(1, size):
            gain = sum(
                (Fraction(beta[t - source].item()) * reach[t] for t in range(source, size)),
                Fraction(0),
            )
            total += gain**2
        found = toeplitz_factor(x, decoder=beta, sample_size=size)
        scale = float(np.sum(np.abs(beta)) ** 2 * size**3)
        assert float(found) == pytest.approx(float(total), rel=1e-9, abs=1e-13 * scale)


@pytest.mark.parametrize("seed", SEEDS)
def test_factors_of_many_steps_are_their_closed_forms(seed: int) -> None:
    """Up to 2^53 steps: Σ (1 - ρ^k)² / (1 - ρ)² as geometric sums in enough digits."""
    rng = np.random.default_rng(seed)
    for _ in range(10):
        size = int(2.0 ** rng.uniform(1, 53))
        x = min(1.0, 10.0 ** rng.uniform(-30, 0))
        with mp.workdps(160):
            rho, n = 1 - mp.mpf(x), size - 1
            first = rho * (1 - rho**n) / (1 - rho)
            second = rho**2 * (1 - rho ** (2 * n)) / (1 - rho**2)
            wanted = (n - 2 * first + second) / mp.mpf(x) ** 2
        found = independent_factor(x, sample_size=size)
        assert float(found) == pytest.approx(float(wanted), rel=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_privacy_error_is_a_sum_of_fractions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    d, size = int(rng.integers(1, 6)), int(10 ** rng.uniform(0, 12))
    lam, shape, weight = (10.0 ** rng.uniform(-40, 40, d) for _ in range(3))
    eta, std = 10.0 ** rng.uniform(-20, 20, 2)
    found = privacy_error(
        weight,
        eigenvalues=lam,
        covariance=shape,
        step_size=float(eta),
        sample_size=size,
        noise_std=float(std),
    )
    products = zip(lam.tolist(), shape.tolist(), weight.tolist(), strict=True)
    total = sum(Fraction(a) * Fraction(b) * Fraction(c) for a, b, c in products)
    wanted = total * (Fraction(float(std)) * Fraction(float(eta)) / size) ** 2 / 2
    assert found == pytest.approx(float(wanted), rel=1e-12)


# Second moments


def dense_moments(
    lam: np.ndarray, eta: float, size: int, start: np.ndarray, sources: list[np.ndarray]
) -> float:
    """Mean ½ λᵀE[S²] / N² of the sum S of all iterates, where independent sources enter.

    E[u_s u_t^T] for all pairs of steps; Gaussian rows by their fourth moment, with matrices.
    """
    d = lam.size
    h = np.diag(lam)
    moment = np.diag(start)
    total = np.zeros((d, d))
    keep = np.eye(d) - eta * h
    for t in range(size):
        summed = sum((np.linalg.matrix_power(keep, k) for k in range(size - t)), np.zeros((d, d)))
        total += moment @ summed + (moment @ summed).T - moment
        fourth = 2 * h @ moment @ h + np.trace(h @ moment) * h
        moment = moment - eta * (h @ moment + moment @ h) + eta**2 * fourth
        moment = moment + np.diag(sources[t])
    return float(0.5 * np.trace(h @ total) / size**2)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_risk_of_the_average_is_that_of_all_pairs_of_iterates(seed: int) -> None:
    rng = np.random.default_rng(seed)
    d, size = int(rng.integers(1, 5)), int(rng.integers(1, 25))
    lam = 10.0 ** rng.uniform(-6, 0, d) * (rng.random(d) < 0.9)
    eta = 10.0 ** rng.uniform(-3, 0.2)
    target, zeta = rng.standard_normal(d), 10.0 ** rng.uniform(-3, 3)
    found = sgd_risk(lam, target=target, label_noise_std=zeta, step_size=eta, sample_size=size)
    nothing = [np.zeros(d)] * size
    label = [eta**2 * zeta**2 * lam] * size
    bias = dense_moments(lam, eta, size, target**2, nothing)
    assert found.bias == pytest.approx(bias, rel=1e-9)
    assert found.label_noise == pytest.approx(
        dense_moments(lam, eta, size, np.zeros(d), label), rel=1e-9
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_private_noise_is_that_of_the_lifted_linear_map(seed: int) -> None:
    """Each vector of white noise by itself, E[(u, z, S)(u, z, S)^T] of a state with all three."""
    rng = np.random.default_rng(seed)
    d, size = int(rng.integers(1, 4)), int(rng.integers(2, 14))
    lam, shape = 10.0 ** rng.uniform(-4, 0, (2, d))
    eta, std = 10.0 ** rng.uniform(-2, 0, 2)
    beta = rng.standard_normal(size - 1)
    found = private_risk(
        lam,
        covariance=shape,
        noise_std=std,
        step_size=eta,
        sample_size=size,
        decoder=beta,
    )
    tree = private_risk(lam, covariance=shape, noise_std=std, step_size=eta, sample_size=size)
    wanted = sum(
        lifted(lam, shape, eta, np.concatenate([np.zeros(s - 1), beta[: size - s]]))
        for s in range(1, size)
    )
    assert found == pytest.approx(std**2 * wanted / size**2, rel=1e-9)
    nodes = sorted({node for t in range(1, size) for node in prefix_nodes(t)})
    total = 0.0
    for node in nodes:
        use = np.array([float(node in prefix_nodes(t)) for t in range(size)])
        # Step t adds the increment of the prefix sum from t - 1 to t.
        total += lifted(lam, shape, eta, np.diff(use))
    assert tree == pytest.approx(std**2 * total / size**2, rel=1e-9)


def lifted(lam: np.ndarray, shape: np.ndarray, eta: float, kicks: np.ndarray) -> float:
    """½ λᵀE[S²] of the sum S of iterates, for noise z that enters -η β_t times in step t."""
    d = lam.size
    h, zero, one = np.diag(lam), np.zeros((d, d)), np.eye(d)
    state = np.zeros((3 * d, 3 * d))
    state[d : 2 * d, d : 2 * d] = np.diag(shape)
    for kick in kicks:
        keep = one - eta * h
        step = np.block([[keep, -eta * kick * one, zero], [zero, one, zero], [zero, zero, one]])
        u = state[:d, :d]
        # What the fourth moment of a Gaussian row adds to the squared mean step.
        extra = eta**2 * (h @ u @ h + np.trace(h @ u) * h)
        state = step @ state @ step.T
        state[:d, :d] += extra
        add = np.block([[one, zero, zero], [zero, one, zero], [one, zero, one]])
        state = add @ state @ add.T
    return float(0.5 * np.trace(h @ state[2 * d :, 2 * d :]))


# Bounds


@pytest.mark.parametrize("seed", SEEDS)
def test_bounds_are_their_formulas_in_fractions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(10):
        values = 10.0 ** rng.uniform(-5, 0, int(rng.integers(1, 6)))
        decay = FiniteDecay(values)
        size, eta = 10.0 ** rng.uniform(0, 40), 10.0 ** rng.uniform(-20, 2)
        tau, norm, zeta, scale = 10.0 ** rng.uniform(-20, 20, 4)
        given = {
            "sample_size": float(size),
            "step_size": float(eta),
            "noise_multiplier": float(tau),
            "target_norm": float(norm),
            "label_noise_std": float(zeta),
            "residual_scale": float(scale),
        }
        n, e, t, b, z, l2 = (mp.mpf(each) for each in given.values())
        with mp.workdps(40):
            lam = [mp.mpf(x) for x in values.tolist()]
            dimension = sum(min(1, n * e * x) for x in lam)
            bias, variance = b**2 / (n * e), (z**2 / n + b**2 / (n**2 * e)) * dimension
            noise = (l2 * t) ** 2
            squares = sum(x * x for x in lam)
            flat = noise * e * dimension
            shaped = noise * (e**2 * squares * dimension + dimension**3 / n)
        for function, private in ((identity_bound, flat), (designed_bound, shaped)):
            parts = function(decay, **given)
            wanted = [float(each) for each in (bias, variance, private)]
            np.testing.assert_allclose([float(each) for each in parts], wanted, rtol=1e-10)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_general_bound_is_the_least_over_explicit_matrices(seed: int) -> None:
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 6))
    lam = np.sort(10.0 ** rng.uniform(-6, 0, d))[::-1]
    shape, target = 10.0 ** rng.uniform(-4, 4, d), rng.standard_normal(d)
    sigma = 10.0 ** rng.uniform(-0.5, 0.2)
    eta = 10.0 ** rng.uniform(-6, -0.01) / (sigma**4 * lam.sum())
    n = int(10 ** rng.uniform(0, 12))
    tau, psi, zeta = 10.0 ** rng.uniform(-4, 4, 3)
    found = general_bound(
        lam,
        target=target,
        covariance=shape,
        sample_size=n,
        step_size=eta,
        noise_multiplier=tau,
        clip_norm=psi,
        label_noise_std=zeta,
        feature_scale=sigma,
    )
    h, s4 = np.diag(lam), sigma**4
    best = None
    for k in range(1, d + 1):
        head = np.diag((np.arange(d) < k).astype(float))
        tail = np.eye(d) - head
        spread = k / n + n * eta**2 * np.sum(lam[k:] ** 2)
        q = head + n * eta * h @ tail
        r = np.linalg.inv(h) @ head + (n * eta) ** 2 * h @ tail
        g = eta * s4 * np.trace(h @ np.diag(shape)) * q
        g = g + (psi**2 + psi**4 + 1) * np.diag(shape)
        bias = target @ np.linalg.inv(h) @ head @ target / (eta * n) ** 2
        bias += target @ h @ tail @ target
        room = 1 - s4 * eta * lam.sum()
        bias += s4 * (target @ q @ target) / (n * eta * room) * spread
        variance = zeta**2 * s4 * (1 + eta * np.trace(q @ h)) * spread
        private = tau**2 * (s4 * eta * np.trace(q @ g) * spread + np.trace(r @ g) / n)
        if best is None or bias + variance + private < sum(best):
            best = (bias, variance, private)
    np.testing.assert_allclose(np.array(found, dtype=float), best, rtol=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_best_step_size_is_that_of_a_finer_grid(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size, largest = 10.0 ** rng.uniform(0, 20), 10.0 ** rng.uniform(0, 5)
    centre = np.exp(rng.uniform(np.log(1 / size) - 2, np.log(largest) + 2))

    def bound(eta: np.ndarray) -> np.ndarray:
        return eta / centre + centre / eta

    best = minimise_over_step_size(bound, sample_size=size, largest=largest)
    inside = np.clip(centre, 1 / size, largest)
    assert best.value == pytest.approx(float(bound(inside)), rel=1e-6)
    assert 1 / size * (1 - 1e-12) <= best.step_size <= largest * (1 + 1e-12)
    power, sizes = rng.uniform(-3, 3), 10.0 ** rng.uniform(0, 100, 5)
    assert fitted_exponent(sizes, 7 * sizes**-power) == pytest.approx(power, abs=1e-10)


def test_a_largest_step_size_below_the_smallest_is_refused() -> None:
    """At N = 1 the range would otherwise be taken backwards, and its end returned."""
    with pytest.raises(ValueError, match="largest must be at least 1"):
        minimise_over_step_size(lambda eta: eta, sample_size=1, largest=0.5)


# Rates


@pytest.mark.parametrize("seed", SEEDS)
def test_rates_are_slopes_of_the_balanced_bounds(seed: int) -> None:
    """x is the best over η = N^-s of the least exponent among a bound's terms.

    With D = (Nη)^(1/r), by linear programming in s over its breakpoints.
    """
    rng = np.random.default_rng(seed)
    for _ in range(20):
        r = Fraction(int(rng.integers(101, 2000)), 100)
        p = Fraction(int(rng.integers(-100, 100)), 50)

        def exponents(s: Fraction, r: Fraction = r, p: Fraction = p) -> dict[str, list[Fraction]]:
            dimension = (1 - s) / r
            common = [1 - s, 1 - dimension]
            # The paper's noise has τ² of the order of N^-2p.
            noise = 2 * p
            return {
                "plain": common,
                "identity": [*common, noise + s - dimension],
                "designed": [*common, noise + 2 * s - dimension, noise + 1 - 3 * dimension],
            }

        def best(name: str) -> Fraction:
            # Concave and piecewise linear in s: best where two lines meet, or at an end.
            names = exponents(Fraction(0))[name]
            at = [exponents(Fraction(s))[name] for s in (0, 1)]
            lines = [(a, b - a) for a, b in zip(*at, strict=True)]
            candidates = {Fraction(0), Fraction(1)}
            for i in range(len(names)):
                for j in range(i):
                    (a, b), (c, d) = lines[i], lines[j]
                    if b != d and 0 <= (c - a) / (b - d) <= 1:
                        candidates.add((c - a) / (b - d))
            return max(min(a + b * s for a, b in lines) for s in candidates)

        assert nonprivate_exponent(r) == best("plain")
        if identity_exponent(r, epsilon_power=p) >= 0 and p >= 0:
            assert identity_exponent(r, epsilon_power=p) == best("identity")
            assert designed_exponent(r, epsilon_power=p) == best("designed")
        for threshold, exponent in (
            (identity_threshold(r), identity_exponent),
            (designed_threshold(r), designed_exponent),
        ):
            assert exponent(r, epsilon_power=threshold) == nonprivate_exponent(r)
            less = threshold - Fraction(1, 10**6)
            assert exponent(r, epsilon_power=less) < nonprivate_exponent(r)
        for found, function in zip(
            exponential_exponents(epsilon_power=p)[1:],
            (identity_exponent, designed_exponent),
            strict=True,
        ):
            far = function(Fraction(10**12), epsilon_power=p)
            assert abs(float(found - far)) < 1e-10
        assert float(identity_exponent(float(r), epsilon_power=float(p))) == pytest.approx(
            float(identity_exponent(r, epsilon_power=p)), abs=1e-12
        )


@pytest.mark.parametrize("seed", SEEDS)
def test_branches_cross_where_their_difference_changes_sign(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(50):
        d, e = rng.integers(1, 9, 2).tolist()
        a, b, f, g = rng.integers(-9, 10, 4).tolist()
        one = LinearFraction(a, b, int(rng.integers(-d, 9)), d)
        other = LinearFraction(f, g, int(rng.integers(-e, 9)), e)
        for root in one.crossings(other):
            assert one(root) == other(root)
        r = Fraction(int(rng.integers(1001, 9000)), 1000)
        assert one(float(r)) == pytest.approx(float(one(r)), rel=1e-9, abs=1e-9)


def test_a_branch_with_a_pole_is_refused() -> None:
    with pytest.raises(ValueError, match="c must be a whole number, at least -1, got -2"):
        LinearFraction(0, 1, -2, 1)


SECOND_ROUTES = {
    PowerLawDecay: test_a_power_law_has_the_sums_of_its_eigenvalues,
    ExponentialDecay: test_other_decays_have_the_sums_of_their_eigenvalues,
    FiniteDecay: test_other_decays_have_the_sums_of_their_eigenvalues,
    effective_dimension: test_a_power_law_has_the_sums_of_its_eigenvalues,
    tree_factor: test_factors_are_those_of_the_dense_map,
    independent_factor: test_factors_are_those_of_the_dense_map,
    toeplitz_factor: test_factors_are_those_of_the_dense_map,
    privacy_error: test_the_privacy_error_is_a_sum_of_fractions,
    sgd_risk: test_the_risk_of_the_average_is_that_of_all_pairs_of_iterates,
    private_risk: test_private_noise_is_that_of_the_lifted_linear_map,
    identity_bound: test_bounds_are_their_formulas_in_fractions,
    designed_bound: test_bounds_are_their_formulas_in_fractions,
    general_bound: test_the_general_bound_is_the_least_over_explicit_matrices,
    nonprivate_exponent: test_rates_are_slopes_of_the_balanced_bounds,
    identity_exponent: test_rates_are_slopes_of_the_balanced_bounds,
    designed_exponent: test_rates_are_slopes_of_the_balanced_bounds,
    identity_threshold: test_rates_are_slopes_of_the_balanced_bounds,
    designed_threshold: test_rates_are_slopes_of_the_balanced_bounds,
    LinearFraction: test_branches_cross_where_their_difference_changes_sign,
}
