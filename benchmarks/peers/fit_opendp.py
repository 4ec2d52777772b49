"""Least squares from second moments that OpenDP's Gaussian mechanism makes noisy.

OpenDP has no linear regression on several features. What it documents is the mechanism; the sum,
its sensitivity and the solution are written here: one release of the second moments of (1, x, y),
off-diagonal entries times √2, so that Euclidean distance is the matrices' Frobenius distance, and
replacing a record of squared length B² moves the sum by at most √2 B². The bound on the label is
tuned, and so is the ridge: none, or the one that lifts the smallest eigenvalue to some times the
noise's size.
"""

from itertools import product

import numpy as np
import opendp.prelude as dp
import protocol

dp.enable_features("contrib")


def noisy_moments(records, square_length, rho):
    """Second moments (q, q) of records (n, q), and the deviation of a diagonal entry's noise."""
    sums = records.T @ records
    upper = np.triu_indices(len(sums), 1)
    vector = np.concatenate([np.diag(sums), np.sqrt(2) * sums[upper]])
    sensitivity = np.sqrt(2) * square_length
    scale = sensitivity / np.sqrt(2 * rho)
    domain = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=vector.size)
    measurement = dp.m.make_gaussian(domain, dp.l2_distance(T=float), scale=scale)
    if measurement.map(sensitivity) > rho * (1 + 1e-9):
        raise ValueError(f"OpenDP grants {measurement.map(sensitivity)} and not {rho}")
    released = np.array(measurement(vector.tolist()))
    found = np.zeros_like(sums)
    found[upper] = released[len(sums) :] / np.sqrt(2)
    return found + found.T + np.diag(released[: len(sums)]), scale


def fit(rows, labels, promise, rng, setting):
    """The release, solved; its noise is the operating system's."""
    bound, times = setting
    short = promise.short(rows)
    records = np.column_stack([short, np.clip(labels, -bound, bound)])
    moments, scale = noisy_moments(records, promise.short_norm**2 + bound**2, promise.rho)
    least = times * scale * np.sqrt(2 * short.shape[1]) if times else -np.inf
    return promise.fit_of(protocol.solved(moments[:-1, :-1], moments[:-1, -1], least))


SETTINGS = [*product((1.0, 0.3, 0.1), (0.0, 0.5, 1.0, 3.0))]
protocol.run({"OpenDP": (fit, SETTINGS)}, "opendp", "numpy")
