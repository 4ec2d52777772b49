"""What the largest jobs draw, compute and move, declared for `floors.py`, and why some take longer.

Operations are floating-point operations, a multiplication and an addition being two, as few as the
algorithm needs whatever the code does. A job of none here has its draws counted in a run.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import log2
from typing import Any

# 64-bit numbers that the ziggurat method takes for a normal, on average.
NUMBERS_A_NORMAL = 1.0220
IMAGE_FEATURES, CLASSES = 197 + 246, 10
# Of an experiment's parameters and number of trials.
Formula = Callable[[Any, int], float]


def _heat_maps(columns: int, p: Any, trials: int) -> float:
    """Prediction and update of each row, and predictions of the held-out rows, of each setting."""
    settings = len(p.exponents) * p.clip_constants.count * p.initial_rates.count
    rows = 4 * sum(p.train) + 2 * p.validation * len(p.train)
    return float(trials * settings * columns * rows)


def _table_sizes(columns: int, p: Any, trials: int) -> float:
    """The same of all candidates in each tuning run, and of the chosen; half the rows held out."""
    candidates = p.initial_rates.count * (len(p.exponents) + len(p.offsets))
    settings = p.tuning_runs * candidates + len(p.exponents) + 1
    return float(trials * settings * columns * (4 * sum(p.train) + p.validation * len(p.train)))


def _sample_sizes(p: Any, trials: int) -> float:
    """Residual, update and noise of each schedule; isotropic rows take none of size d."""
    schedules = len(p.exponents) + 1
    return float(trials * sum(p.sample_sizes) * p.dimension * (6 * schedules + 3))


def _screened(p: Any, trials: int) -> float:
    """Half of the symmetric Gram matrix, and the residuals along the centre path."""
    each = p.dimension * (p.dimension + 1 + 2 * max(p.steps))
    return float(trials * sum(p.sample_sizes) * each)


def _coverage(p: Any, trials: int) -> float:
    """Residual and update of each row and step, on one path and in independent runs."""
    gradients = sum(p.gradients) + sum(p.long_gradients)
    return float(4 * trials * p.runs * gradients * p.sample_size * p.dimension)


def _trajectories(p: Any, trials: int) -> float:
    """Norm, residual, update, noise and risk of each step of a run."""
    numbers = sum(d * d for d in p.dimensions) / p.aspect_ratio
    return float(11 * trials * len(p.spectra) * len(p.exponents) * numbers)


def _scaling(p: Any, trials: int) -> float:
    """Inner product, update, noise and risk of both algorithms; two real FFTs for one's noise."""
    from reproduction.papers.choquettechoo2024.regression import damping

    total = 0.0
    for setting, d in zip(p.settings, p.dimensions, strict=True):
        memory = 1 / damping(setting)
        steps = p.burn_in_memories * memory
        steps += max(p.averaged_memories * memory, p.least_averaged)
        # A real transform of length 2n takes 2.5 · 2n log2(2n).
        total += steps * d * (2 * 9 + 2 * 2.5 * 2 * log2(2 * steps))
    return trials * total


def _fixed_ratio(p: Any, trials: int) -> float:
    """Gram matrices of all and of two kinds of clipped rows; anisotropic rows take a product."""
    squares = 3 + 2 * p.anisotropic
    sizes = [(p.samples_per_feature * d, d) for d in p.dimensions]
    return float(trials * sum(n * d * (squares * d + 4 * p.steps) for n, d in sizes))


def _fixed_ratio_bytes(p: Any, trials: int) -> float:
    """Rows beyond the caches: written once, read for each step and Gram matrix."""
    numbers = sum(p.samples_per_feature * d * d for d in p.dimensions)
    return float(8 * trials * numbers * (p.steps + 3 + 1))


def _tuned_risk(p: Any, trials: int) -> float:
    """Steps of each setting and coordinate; public Gram matrices, eigenvectors, norms and noise."""
    n, d, steps = p.sample_size, p.dimension, p.step_sizes.count
    public = 3 * len(p.public_ratios)
    settings = steps * (1 + len(p.arms) * len(p.epsilons))
    total = 7 * (n - 1) * d * settings + 2 * (n - 1) * d * public * len(p.epsilons) * steps
    for rows in (ratio * n for ratio in p.public_ratios):
        least = min(rows, d)
        # An eigendecomposition of size k takes 14/3 k³: two reductions and their vectors.
        total += rows * d * least + 14 / 3 * least**3
        total += 2 * n * (d * rows + rows * least if rows < d else d * d)
        total += 3 * 2 * (n - 1) * rows * d
    return float(trials * total)


def _private_training(p: Any, trials: int) -> float:
    """Scores and gradients of each run, and dense decoders; single precision counts half."""
    arms, budgets = 6, len(p.epsilons)
    runs = trials * (arms * budgets + 1)
    runs += arms * budgets * len(p.rate_factors) + len(p.noiseless_rates)
    steps, dense = p.epochs * p.steps_per_epoch, 4
    passes = 4 * runs * p.sample_size * p.epochs + dense * (trials + 1) * steps**2
    return IMAGE_FEATURES * CLASSES * passes / 2


def _training_draws(p: Any, trials: int) -> float:
    """Single-precision normals, two a number, of the trials and the tuning run: 98 % of all."""
    steps = p.epochs * p.steps_per_epoch
    return NUMBERS_A_NORMAL * (trials + 1) * steps * IMAGE_FEATURES * CLASSES / 2


def _pair_losses(p: Any, trials: int) -> float:
    """One Gram matrix, and all pairs at each place."""
    n, d = p.design.sample_size, p.design.dimension
    return float(trials * n * n * (d + PAIR * len(p.places)))


def _privacy_paths(p: Any, trials: int) -> float:
    """The same for the searched records at each position, and what moves with it."""
    from privreg.theory.noisy_sgd.shuffled_position import position_quadrature

    def searches(steps: list[int]) -> int:
        d = p.design.dimension
        return sum(
            len(position_quadrature([step / d], finest=p.finest / d, nodes_per_panel=3)[0])
            for step in steps
        )

    records, d = p.candidates + 2 * p.pairs, p.design.dimension
    found = len(p.gradient_noise_stds) * searches(p.steps) + len(p.orders) * searches(p.sweep_steps)
    return float(trials * found * records * (PAIR * records + 4 * d))


def _martingales(steps_a_dimension: Callable[[Any], float], each: int) -> Formula:
    """Operations of a step and coordinate of both processes and what is followed of them."""
    return lambda p, trials: trials * each * steps_a_dimension(p) * sum(d * d for d in p.dimensions)


def _responses(p: Any, trials: int) -> float:
    """Each step moves the responses to all earlier ones, a matrix and a vector each."""
    pairs = sum(steps**2 / 2 for steps in p.step_counts)
    return trials * len(p.label_noise_stds) * pairs * 6 * p.dimension * (p.dimension + 1)


def _counted(number: float, p: Any, trials: int) -> float:
    return number


# Operations for an ordered pair of records: inverses of size 2, and bounds of their errors.
PAIR = 150
OPERATIONS: dict[str, Formula] = {
    "simulation/anon2024/tuned_risk": _tuned_risk,
    "simulation/anon2024/tuned_risk_slow": _tuned_risk,
    "simulation/anon2024/tuned_risk_steep": _tuned_risk,
    "simulation/bombari2025/housing_heat_maps": partial(_heat_maps, 8),
    "simulation/bombari2025/housing_sample_sizes": partial(_table_sizes, 8),
    # Pixels that vary enough, of 784.
    "simulation/bombari2025/mnist_heat_maps": partial(_heat_maps, 642),
    "simulation/bombari2025/mnist_sample_sizes": partial(_table_sizes, 649),
    "simulation/bombari2025/martingales": _martingales(lambda p: 1 / p.aspect_ratio, 80),
    "simulation/bombari2025/sample_sizes": _sample_sizes,
    "simulation/bombari2025/trajectories": _trajectories,
    "simulation/brown2024/coverage_clipped": _coverage,
    "simulation/brown2024/coverage_less_clipped": _coverage,
    "simulation/brown2024/fixed_ratio": _fixed_ratio,
    "simulation/brown2024/fixed_ratio_anisotropic": _fixed_ratio,
    "simulation/brown2024/hundred_features": _screened,
    "simulation/brown2024/ten_features": _screened,
    "simulation/choquettechoo2024/private_training": _private_training,
    "simulation/choquettechoo2024/scaling_decay": _scaling,
    "simulation/choquettechoo2024/scaling_dimension": _scaling,
    "simulation/choquettechoo2024/scaling_step": _scaling,
    "simulation/choquettechoo2024/unclipped_runs": _responses,
    "simulation/lin2025/martingales": _martingales(lambda p: p.horizon, 90),
    "simulation/lin2025/pair_losses": _pair_losses,
    "simulation/lin2025/privacy_paths": _privacy_paths,
}
DRAWS: dict[str, Formula] = {"simulation/choquettechoo2024/private_training": _training_draws}
BYTES: dict[str, Formula] = {
    "simulation/brown2024/fixed_ratio": _fixed_ratio_bytes,
    "simulation/brown2024/fixed_ratio_anisotropic": _fixed_ratio_bytes,
}
# Of the dense optimum, counted in a run: 10⁹ operations, its size cubed for each inverse and each
# gradient; 10⁹ bytes, ten passes over a matrix for each pair that L-BFGS remembers in a step.
DENSE = {
    "prefix_growth": (306, 20),
    "prefix_stackoverflow": (364, 28),
    "private_training": (721, 73),
}
for _name, (_operations, _bytes) in DENSE.items():
    OPERATIONS[f"theory/choquettechoo2024/{_name}"] = partial(_counted, 1e9 * _operations)
    BYTES[f"theory/choquettechoo2024/{_name}"] = partial(_counted, 1e9 * _bytes)
# Of each ratio above 2; shares are of a profile of one trial.
REASONS = {
    "simulation/anon2024/tuned_risk": "recursion over rows 27 %, eigenvectors 23 %, products of "
    "public noise 17 %, draws 8 %, FFTs 4 %",
    "simulation/anon2024/tuned_risk_slow": "recursion over rows 45 %, products of public noise 9 "
    "%, draws 8 %, eigenvectors 7 %",
    "simulation/anon2024/tuned_risk_steep": "as tuned_risk_slow",
    "simulation/bombari2025/housing_heat_maps": "eight columns: steps from row to row 34 %, "
    "losses 32 %, splits of the table 4 %",
    "simulation/bombari2025/housing_sample_sizes": "eight columns: steps from row to row 42 %, "
    "losses 14 %, schedules 7 %, draws 5 %",
    "simulation/bombari2025/martingales": "Python, 400 µs a step of 16 trials: short vectors",
    "simulation/bombari2025/mnist_heat_maps": "products of 32 rows 65 %, at 45 GFLOP/s; losses 11 "
    "%, splits of the table 8 %, draws 4 %",
    "simulation/bombari2025/mnist_sample_sizes": "products of 32 rows 42 %, draws 21 %, losses 9 "
    "%, splits of the table 9 %",
    "simulation/bombari2025/sample_sizes": "draws and vectors of 100 between them 66 %, the "
    "isotropic chain 20 %, shapes of schedules 8 %",
    "simulation/brown2024/coverage_clipped": "products of ten columns and ten runs 69 %, at 20 "
    "GFLOP/s; clipping 20 %",
    "simulation/brown2024/coverage_less_clipped": "as coverage_clipped",
    "simulation/brown2024/fixed_ratio": "three Gram matrices 49 %, tables 19 %, clipped sums 17 "
    "%, copies 6 %, eigenvalues 5 %",
    "simulation/brown2024/fixed_ratio_anisotropic": "tables and their rotation 43 %, Gram "
    "matrices 34 %, clipped sums 12 %, copies 4 %",
    "simulation/brown2024/hundred_features": "residuals and Gram matrices of screening 34 %, "
    "draws 27 %, clipped sums 10 %, second moments 7 %, norms 6 %",
    "simulation/brown2024/ten_features": "screening 28 %, draws 21 %, norms 5 %, copies 3 %",
    "simulation/choquettechoo2024/scaling_decay": "correlating noise 53 %, FFTs 23 % of it; noise "
    "otherwise 29 %, draws 14 % of it; steps 15 %",
    "simulation/choquettechoo2024/scaling_dimension": "as scaling_decay",
    "simulation/choquettechoo2024/scaling_step": "as scaling_decay",
    "simulation/choquettechoo2024/unclipped_runs": "Python of the step loop 48 %, small sums 16 %",
    "simulation/lin2025/martingales": "short vectors in Python: steps 33 %, draws 17 %, "
    "interpolation of the risk 12 %",
    "simulation/lin2025/pair_losses": "passes over 2 million pairs: proxies 36 %, Gram matrices "
    "12 %, divergences 12 %, the largest 8 %",
    "simulation/lin2025/privacy_paths": "3,500 small matrices of pairs a trial: divergences 20 %, "
    "proxies 25 %, laws at positions 25 %",
    "theory/choquettechoo2024/convex_programs": "no formula: 203 convex programs",
    "theory/choquettechoo2024/prefix_growth": "products 22 %, inverses 19 %, cosine transforms 17 "
    "%, remembered pairs 7 %, eigenvalues of the bound 5 %",
    "theory/choquettechoo2024/prefix_stackoverflow": "products 23 %, inverses 21 %, cosine "
    "transforms 13 %, remembered pairs 9 %, other mechanisms 15 %",
}
