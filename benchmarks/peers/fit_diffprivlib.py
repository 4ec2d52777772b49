"""diffprivlib's `LinearRegression` on tables that lie mapped into [-1, 1].

The functional mechanism with Laplace noise; bounds are symmetric, as its sensitivities ask for, and
an intercept is fitted, without which it clips nothing. The bound on the label is tuned.
"""

import warnings

import numpy as np
import protocol
from diffprivlib.models import LinearRegression

warnings.simplefilter("ignore", RuntimeWarning)


def fit(rows, labels, promise, rng, bound):
    """The library's own fit, which clips labels to ± the bound."""
    bounds = {"bounds_X": (-1, 1), "bounds_y": (-bound, bound)}
    seed = int(rng.integers(2**31))
    model = LinearRegression(epsilon=promise.epsilon, random_state=seed, **bounds)
    model.fit(rows, labels)
    return protocol.Fit(np.append(np.ravel(model.coef_), np.ravel(model.intercept_)))


METHODS = {"diffprivlib": (fit, (1.0, 0.5, 0.25, 0.1))}
protocol.run(METHODS, "diffprivlib", "numpy", "scikit-learn", "scipy")
