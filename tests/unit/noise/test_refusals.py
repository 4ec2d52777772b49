"""Noise: arguments out of range are refused by name."""

import numpy as np
import pytest

from privreg.noise import exact, optimal, streams, toeplitz
from privreg.noise.covariance import (
    DiagonalCovariance,
    PublicCovariance,
    identity_covariance,
    population_covariance,
)
from privreg.noise.streams import SquareRootCorrelation

RNG = np.random.default_rng(0)
THREE = identity_covariance(3)


@pytest.mark.parametrize(
    ("call", "arguments", "given", "message"),
    [
        (toeplitz.damped_square_root, [5], {"damping": 1.5}, "damping"),
        (toeplitz.inverse_coefficients, [[0.0, 1.0]], {}, "coefficients"),
        (toeplitz.dense_matrix, [[[1.0]]], {}, "coefficients"),
        (toeplitz.step_variances, [[1.0, 0.0]], {"workload": [1.0]}, "workload"),
        (toeplitz.workload_errors, [[1.0]], {"sensitivity": -1.0}, "sensitivity"),
        (optimal.toeplitz_optimum, [5], {"criterion": "median"}, "criterion"),
        (optimal.toeplitz_optimum, [5], {"workload": [1.0, 1.0]}, "workload"),
        (optimal.toeplitz_optimum, [3], {"workload": np.zeros(3)}, "workload must have a nonzero"),
        (optimal.toeplitz_optimum, [5], {"weights": [0.0]}, "workload"),
        (streams.ToeplitzNoise, [[1.0, 2e12]], {"dimension": 1, "rng": RNG}, "decoder"),
        (optimal.toeplitz_optimum, [5], {"bands": 6}, "bands"),
        (optimal.dense_optimum, [10], {"epochs": 3}, "epochs"),
        (optimal.dense_optimum, [4], {"workload": [1.0]}, "workload"),
        (streams.ToeplitzNoise, [[]], {"dimension": 1, "rng": RNG}, "decoder"),
        (streams.ToeplitzNoise, [[0.0, 1.0]], {"dimension": 1, "rng": RNG}, "decoder"),
        (streams.correlate_noise, [[1.0], np.zeros(3)], {}, "must"),
        (SquareRootCorrelation, [1.5], {}, r"damping must be .* at most 1, got 1\.5"),
        (DiagonalCovariance, [[1.0, 0.0]], {}, "diagonal must be at least"),
        (DiagonalCovariance, [[[1.0]]], {}, "diagonal must have shape"),
        (population_covariance, [[1.0, np.nan]], {"horizon": 1.0}, "eigenvalues must be at least"),
        (PublicCovariance, [np.ones(3)], {"ridge": 1.0}, "features must have shape"),
        (THREE.inverse_norms, [[[1.0, 2.0]]], {}, "rows must have shape"),
        (THREE.root_multiply, [[1.0]], {}, "normals must have shape"),
        (THREE.trace, [[1.0, 1.0, -1.0]], {}, "eigenvalues must be at least 0"),
        (
            toeplitz.mean_estimation_optimal,
            [9],
            {"step_size": 0.0},
            "step_size must be more than 0",
        ),
        (exact.integer_noise_std, [], {"square_sensitivity": 4, "rho": np.inf}, "rho"),
    ],
)
def test_arguments_out_of_range_are_named(call, arguments, given, message):
    with pytest.raises(ValueError, match=message if "must" in message else f"{message}.* must"):
        call(*arguments, **given)
