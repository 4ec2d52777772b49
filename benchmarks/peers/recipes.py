"""Private regressions from published recipes, written with NumPy: what no library offers whole.

Replace-one neighbours, Gaussian mechanisms, ρ in all. Every setting but the bounds is one of those
that `fit_privreg` tunes.
"""

import numpy as np
from protocol import Fit, solved
from scipy.stats import norm

FAILURE = 0.05
# Largest standardised label, in private deviations.
LABEL_CLIP = 4.0
# Deviations of its own noise from which something counts as seen.
VISIBLE = 1.645


def gaussian(total, change, rho, rng):
    """A sum that one record moves by at most `change`, made ρ-zCDP."""
    return total + change / np.sqrt(2 * rho) * rng.standard_normal(np.shape(total))


def noisy_matrix(matrix, change, rho, rng):
    """A symmetric matrix with noise that is isotropic in the Frobenius norm, and its deviation."""
    std = change / np.sqrt(2 * rho)
    upper = np.triu(rng.standard_normal(matrix.shape), 1) / np.sqrt(2)
    diagonal = np.diag(rng.standard_normal(len(matrix)))
    return matrix + std * (upper + upper.T + diagonal), float(std)


def boosted_adassp(rows, labels, promise, rng, setting):
    """AdaSSP's ridge and Gram matrix once, then rounds on clipped residuals (Tang et al. 2023).

    A third of ρ each to the smallest eigenvalue, the Gram matrix and all rounds together. The
    setting is the bound on residuals and the number of rounds.
    """
    bound, rounds = setting
    short, third = promise.short(rows), promise.rho / 3
    p, longest = short.shape[1], promise.short_norm
    gram = short.T @ short
    smallest = gaussian(np.linalg.eigvalsh(gram)[0], longest**2, third, rng)
    smallest -= longest**2 / np.sqrt(2 * third) * np.sqrt(-2 * np.log(FAILURE))
    noisy, std = noisy_matrix(gram, np.sqrt(2) * longest**2, third, rng)
    wanted = std * np.sqrt(p * (np.log(2 * p**2) - np.log(FAILURE)))
    ridge = max(0.0, wanted - max(0.0, float(smallest)))
    inverse = np.linalg.inv(noisy + ridge * np.eye(p))
    theta = np.zeros(p)
    for _ in range(rounds):
        total = short.T @ np.clip(labels - short @ theta, -bound, bound)
        theta = theta + inverse @ gaussian(total, 2 * longest * bound, third / rounds, rng)
    return promise.fit_of(theta)


def private_standards(rows, labels, rho, rng):
    """Standardised rows and labels, (n, p + 1), with the private means and deviations used."""
    joint = np.column_stack([np.clip(rows, -1, 1), np.clip(labels, -1, 1)])
    n, q = joint.shape
    # A record's (x, x²) in [-1, 1] × [0, 1] moves by at most 2 and 1 in each pair.
    sums = np.concatenate([joint.sum(axis=0), (joint**2).sum(axis=0)])
    sums = gaussian(sums, np.sqrt(5 * q), rho, rng)
    std = np.sqrt(5 * q) / np.sqrt(2 * rho) / n
    mean = np.clip(sums[:q] / n, -1, 1)
    spread = np.sqrt(np.clip(sums[q:] / n - mean**2, min(1.0, max(std, 1e-4)), 1.0))
    return (joint - mean) / spread, mean, spread


def original_units(theta, mean, spread):
    """Coefficients of rows and labels from those of standardised ones, the intercept first."""
    slopes = theta[1:] * spread[-1] / spread[:-1]
    return Fit(np.append(slopes, mean[-1] + spread[-1] * theta[0] - slopes @ mean[:-1]))


def standardised(rows, labels, promise, rng, setting):
    """Private means and deviations, sufficient statistics of standardised rows, residual rounds.

    Shares of ρ: .1 means and mean squares; .4 second moments of (1, u, v); .05 each residual
    scale and .2 each of two rounds. The setting is the length of rows over √q and the clip of
    residuals in private deviations.
    """
    length, clip = setting
    white, mean, spread = private_standards(rows, labels, 0.1 * promise.rho, rng)
    n, q = white.shape
    v = np.clip(white[:, -1], -LABEL_CLIP, LABEL_CLIP)
    longest = length * np.sqrt(q)
    z = np.column_stack([np.ones(n), white[:, :-1]])
    shrink = np.minimum(1, longest / np.linalg.norm(z, axis=1))
    z, v = z * shrink[:, None], v * shrink
    records = np.column_stack([z, v])
    change = np.sqrt(2) * (longest**2 + LABEL_CLIP**2)
    moments, noise = noisy_matrix(records.T @ records, change, 0.4 * promise.rho, rng)
    gram, least = moments[:-1, :-1], noise * np.sqrt(2 * q)
    theta = solved(gram, moments[:-1, -1], least)
    for _ in range(2):
        residuals = v - z @ theta
        squares = np.minimum(residuals**2, LABEL_CLIP**2).sum()
        found = float(gaussian(squares, LABEL_CLIP**2, 0.05 * promise.rho, rng)) / n
        reach = clip * np.sqrt(np.clip(found, 1e-4, LABEL_CLIP**2))
        total = z.T @ np.clip(residuals, -reach, reach)
        total = gaussian(total, 2 * longest * reach, 0.2 * promise.rho, rng)
        theta = theta + solved(gram, total, least)
    return original_units(theta, mean, spread)


def plain_descent(rows, labels, promise, rng, setting):
    """Private means and mean squares (.16 of ρ), then full-batch steps on standardised rows.

    Eight steps of size .7 on gradients clipped to 2√(p + 1) label deviations; the last four
    iterates are averaged. Its one setting is what is written here.
    """
    white, mean, spread = private_standards(rows, labels, 0.16 * promise.rho, rng)
    n, q = white.shape
    z, v = np.column_stack([np.ones(n), white[:, :-1]]), white[:, -1]
    lengths, clip = np.linalg.norm(z, axis=1), 2 * np.sqrt(q)
    theta, iterates = np.zeros(q), []
    for _ in range(8):
        residuals = v - z @ theta
        residuals *= clip / np.maximum(lengths * np.abs(residuals), clip)
        total = gaussian(z.T @ residuals, 2 * clip, 0.84 / 8 * promise.rho, rng)
        theta = theta + 0.7 * total / n
        iterates.append(theta)
    return original_units(np.mean(iterates[4:], axis=0), mean, spread)


def bins(rows, labels, promise, rng, setting):
    """Private bins, noisy totals of each, and weighted least squares with bias-corrected intervals.

    A tree halves bins with enough noisy records along the next feature (.3 ρ by levels). Each leaf
    releases its count and its totals of labels, and of features about its centre in half-widths
    (.7 ρ). The setting is the records below which a bin is split no further, and the most levels.
    With a leaf's total D of (x, 1), T the map from noise of size s to D, and w the tree's own
    count's inverse, θ solves Σ w (D Dᵀ - s² T Tᵀ) θ = Σ w D Y, whose sandwich gives the intervals.
    """
    least, levels = setting
    rows, labels = np.clip(rows, -1, 1), np.clip(labels, -1, 1)
    n, p = rows.shape
    leaf, centres, halves, counts = tree(rows, least, levels, 0.3 * promise.rho, rng)
    size = len(centres)
    totals = np.zeros((size, p + 2))
    own = np.column_stack([(rows - centres[leaf]) / halves[leaf], np.ones(n), labels])
    np.add.at(totals, leaf, own)
    # Two leaves change by a record each, of length √(p + 2), or one by at most 2 √(p + 1).
    change = max(np.sqrt(2 * (p + 2)), 2 * np.sqrt(p + 1))
    totals = gaussian(totals, change, 0.7 * promise.rho, rng)
    std = change / np.sqrt(2 * 0.7 * promise.rho)
    maps = np.zeros((size, p + 1, p + 1))
    maps[:, np.arange(p), np.arange(p)] = halves
    maps[:, :p, p], maps[:, p, p] = centres, 1.0
    design = np.einsum("kij,kj->ki", maps, totals[:, :-1])
    outcome = totals[:, -1]
    weights = 1 / np.maximum(counts, least)
    noise = std**2 * np.einsum("kij,klj->kil", maps, maps)
    matrix = np.einsum("k,ki,kj->ij", weights, design, design)
    matrix -= np.einsum("k,kij->ij", weights, noise)

    def noise_along(directions):
        """Deviation of vᵀ matrix v for each column v: linear and quadratic part of the noise."""
        long = (design @ directions) ** 2
        wide = np.sum(np.einsum("kji,jl->kil", maps, directions) ** 2, axis=1)
        square = weights[:, None] ** 2
        return np.sqrt(np.sum(square * (4 * std**2 * long * wide + 2 * std**4 * wide**2), axis=0))

    values, vectors = np.linalg.eigh(matrix)
    hidden = float(VISIBLE * noise_along(vectors[:, :1])[0])
    theta = solved(matrix, design.T @ (weights * outcome), hidden)
    if size <= p + 1:
        return Fit(theta, np.full(p, np.inf))
    inverse = np.linalg.inv(matrix + max(0.0, float(hidden - values[0])) * np.eye(p + 1))
    scores = design * (outcome - design @ theta)[:, None] + noise @ theta
    scores *= weights[:, None]
    covariance = inverse @ (scores.T @ scores) @ inverse * size / (size - p - 1)
    # A slope along whose own direction noise hides the matrix has no interval.
    curvature = np.einsum("ij,ij->j", inverse, matrix @ inverse)
    seen = curvature > VISIBLE * noise_along(inverse)
    widths = np.where(seen, norm.ppf(0.975) * np.sqrt(np.diag(covariance)), np.inf)
    return Fit(theta, widths[:-1])


def tree(rows, least, levels, rho, rng):
    """Leaf of each row, and the leaves' centres, half-widths and noisy counts."""
    n, p = rows.shape
    leaf = np.zeros(n, dtype=np.intp)
    centres, halves = np.zeros((1, p)), np.ones((1, p))
    counts, open_ = np.array([float(n)]), np.array([True])
    for level in range(levels):
        axis = level % p
        split = np.flatnonzero(open_)
        if not split.size:
            break
        halves[split, axis] /= 2
        upper = np.full(len(centres), -1)
        upper[split] = len(centres) + np.arange(split.size)
        raised = centres[split].copy()
        raised[:, axis] += halves[split, axis]
        moves = open_[leaf] & (rows[:, axis] > centres[leaf, axis])
        centres[split, axis] -= halves[split, axis]
        leaf = np.where(moves, upper[leaf], leaf)
        centres = np.vstack([centres, raised])
        halves = np.vstack([halves, halves[split]])
        inside = np.bincount(leaf, minlength=len(centres)).astype(float)
        found = gaussian(inside, np.sqrt(2), rho / levels, rng)
        touched = np.concatenate([open_, np.ones(split.size, dtype=bool)])
        # A leaf that is split no further keeps the count that decided it.
        counts = np.where(touched, found, np.concatenate([counts, np.zeros(split.size)]))
        open_ = touched & (counts > 2 * least)
    return leaf, centres, halves, counts
