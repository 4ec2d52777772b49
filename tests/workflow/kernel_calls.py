"""Small calls that reach every compiled kernel; run as a script it prints a digest of each result.

    python kernel_calls.py forwards|backwards

Standard output is a JSON object: `digests` by call, `missed` kernels that no call has compiled, and
how many were loaded from the cache.
"""

from __future__ import annotations

import gc
import hashlib
import json
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numba.core.dispatcher import Dispatcher

from privreg import spectra
from privreg.algorithms import one_pass_dpgd, record_kernels, sound_full_batch_dpgd
from privreg.algorithms.clipped_gradient import clipped_gradient_sum
from privreg.algorithms.dp_ftrl import FTRLMechanism, dp_ftrl
from privreg.algorithms.ftrl_simulation import simulate_ftrl
from privreg.algorithms.noisy_sgd import LinearRecords, simulate_noisy_sgd
from privreg.algorithms.one_pass_together import NARROW
from privreg.algorithms.samples import ArraySamples
from privreg.algorithms.shaped_dp_ftrl import shaped_dp_ftrl
from privreg.algorithms.shaped_mechanism import FixedClip, ShapedMechanism
from privreg.methods.correlated_noise import CorrelatedNoise
from privreg.methods.full_batch_dpgd import FullBatchDPGD
from privreg.methods.one_pass_dpgd import OnePassDPGD
from privreg.methods.predictions import predict_over
from privreg.methods.private_regression import PrivateRegression
from privreg.models import LinearModel
from privreg.noise import discrete, normals_kernel, toeplitz
from privreg.noise.buffered import buffered_square_root
from privreg.noise.correlations import TreeCorrelation
from privreg.noise.covariance import population_covariance
from privreg.noise.streams import BufferedNoise
from privreg.prediction.problem import Problem
from privreg.privacy.budget import Budget
from privreg.schedules import ConstantRate, Polynomial
from privreg.theory.correlated_noise.error_curves import error_curve
from privreg.theory.noisy_sgd.diffusion import HomogenisedSGD, RidgeRegression
from privreg.theory.noisy_sgd.fixed_order_loss import fixed_order_divergence
from privreg.theory.noisy_sgd.worst_pairs import PairSearch
from privreg.theory.one_pass_dpgd import deterministic_equivalent, homogenised_sde
from privreg.theory.shaped_noise.second_moments import private_risk

DIMENSION, SIZE = 37, 60


def generator() -> np.random.Generator:
    return np.random.Generator(np.random.SFC64(7))


def data() -> tuple[Any, Any]:
    # No matrix product, whose rounding is the business of a library that Numba does not compile.
    features = generator().standard_normal((SIZE, DIMENSION))
    return features, features[:, 0] - features[:, 1] + 0.3 * features[:, 2]


def mechanism(
    exponent: float, amplitudes: tuple[float, ...] = (1.0, 3.0, 9.0)
) -> one_pass_dpgd.Mechanism:
    return one_pass_dpgd.Mechanism.from_schedule(
        Polynomial(np.array(amplitudes), exponent),
        sample_size=SIZE,
        dimension=DIMENSION,
        budget=Budget.half_square(1.0),
        clip_constant=0.5,
    )


def few_columns() -> Any:
    features, labels = data()
    return one_pass_dpgd.fit(mechanism(0.5), features[:, :NARROW], labels, generator())


def model() -> LinearModel:
    return LinearModel.even_target(np.linspace(0.5, 1.5, DIMENSION), label_noise_std=0.3)


def drawn(exponent: float) -> Any:
    return one_pass_dpgd.risk_path(mechanism(exponent), model(), generator(), record=range(SIZE))


def isotropic(exponent: float) -> Any:
    return one_pass_dpgd.isotropic_risk_path(
        mechanism(exponent),
        generator(),
        dimension=DIMENSION,
        target_norm=1.0,
        label_noise_std=0.3,
        record=range(SIZE),
    )


def clipped() -> Any:
    features, labels = data()
    parameters = generator().standard_normal((DIMENSION, 5))
    chunks = ArraySamples(features, labels).chunks()
    return clipped_gradient_sum(chunks, parameters, clip_norm=np.geomspace(1, 100, 5))


def noisy() -> Any:
    records = LinearRecords.uniform(mean=0.1, half_width=0.3, target=np.ones(DIMENSION))
    runs = simulate_noisy_sgd(
        records,
        initial=np.zeros(DIMENSION),
        step_sizes=np.full(SIZE, 0.05),
        gradient_noise_stds=[0.1, 1.0],
        clip_norms=[1.0, np.inf],
        ridge=0.1,
        rng=generator(),
    )
    return runs.iterate, runs.risk.non_private, runs.clipped_fraction.non_private


def fixed_order() -> Any:
    features, labels = data()
    return fixed_order_divergence(
        features,
        labels,
        initial=np.zeros(DIMENSION),
        positions=[3, 40],
        replacement_features=features[:2],
        replacement_labels=labels[:2],
        release_steps=[50],
        step_sizes=np.full(SIZE, 0.01),
        gradient_noise_std=1.0,
        ridge=0.1,
        order=2.0,
    )


def pairs() -> Any:
    features, labels = data()
    problem = RidgeRegression(np.full(DIMENSION, 1.0), np.ones(DIMENSION), np.zeros(DIMENSION))
    law = HomogenisedSGD(problem, ConstantRate(0.05), gradient_noise_std=1.5, horizon=1.5)
    search = PairSearch(law, features[:9], labels[:9])
    return search.divergences(times=[0.75], position=0.7, order=2.0)


def diffusion() -> Any:
    return homogenised_sde.risk_path(
        model(),
        Polynomial(1.0, 0.5),
        generator(),
        sample_size=SIZE,
        zcdp_root=1.0,
        clip_constant=0.5,
        times=np.linspace(0, 1, 7),
    )


def equivalent() -> Any:
    return deterministic_equivalent.solve(
        spectra.explicit(np.linspace(0.5, 1.5, DIMENSION)),
        Polynomial(np.array([1.0, 30.0]), 0.5),
        aspect_ratio=0.1,
        zcdp_root=1.0,
        clip_constant=0.5,
        label_noise_std=0.3,
        rtol=1e-3,
    ).risk


def ftrl() -> Any:
    settings = FTRLMechanism.for_budget(
        toeplitz.damped_square_root(SIZE, damping=0.1),
        clip_norm=1.0,
        budget=Budget.zcdp(0.5),
        sample_size=SIZE,
    )
    samples = ArraySamples(*data())
    return dp_ftrl(samples, mechanism=settings, step_size=0.01, rng=generator()).iterates


def ftrl_risks() -> Any:
    return simulate_ftrl(
        np.linspace(0.5, 1.5, DIMENSION),
        step_size=0.01,
        decoder=[1.0, -0.5, -0.1],
        gradient_noise_std=0.1,
        steps=SIZE,
        rng=generator(),
        clip_norm=2.0,
        initial_error=np.ones(DIMENSION),
        record=[0, 30, SIZE],
    )


def shaped() -> Any:
    settings = ShapedMechanism.for_budget(
        Budget.approximate(8.0, 1e-5),
        covariance=population_covariance(np.arange(1, DIMENSION + 1) ** -2.0, horizon=12.0),
        correlation=TreeCorrelation(),
        clipping=FixedClip(8.0),
        sample_size=SIZE,
    )
    samples = ArraySamples(*data())
    return shaped_dp_ftrl(samples, mechanism=settings, step_size=0.2, rng=generator()).average


def integer_gradients() -> Any:
    # Below the public function, whose noise is secret.
    lattice = discrete.grid(1.0, dimension=DIMENSION)
    total = np.zeros(DIMENSION, dtype=np.int64)
    sound_full_batch_dpgd._add_clipped_gradients(*data(), np.ones(DIMENSION), *lattice, total)
    return total


def buffered() -> Any:
    noise = buffered_square_root(SIZE)
    block = BufferedNoise(noise, dimension=3, rng=generator()).draw(9)
    return noise.encoder(), noise.decoder(), block


def many_normals() -> Any:
    # Below the public function, which loads the kernel only after many draws.
    numbers = np.empty(SIZE)
    normals_kernel.fill(generator(), numbers)
    return numbers


def records() -> Any:
    # Below the public functions, which call the kernels for a thousand records or more.
    features, labels = data()
    norms = np.abs(features[:, 0])
    found = [
        record_kernels.bounded_residuals(labels, features[:, 3], norms, norms**2, cap, root)
        for cap, root in ((0.5, 0.0), (0.0, 0.5), (0.0, 0.0))
    ]
    weights = record_kernels.clipped_weights(*found[1], 0.3)
    counts = record_kernels.count_up_to(weights, np.linspace(-1, 1, 9))
    return [*(part for each in found for part in each), weights, counts]


def predicted(law: Any) -> Any:
    problem = Problem(
        1000,
        np.full(4, 0.25),
        signal=1.0,
        label_noise_std=1.0,
        feature_law=law,
        label_noise_law="student_t3",
        misfit=0.2,
    )
    methods = [
        OnePassDPGD(Polynomial(4.0, 0.5), 0.5),
        FullBatchDPGD(steps=5, step_size=1.0, clip_norm=0.5),
        CorrelatedNoise(batch_size=50, step_size=0.5, clip_norm=0.5, damping=0.1),
        PrivateRegression(),
    ]
    (found,) = predict_over(problem, methods, Budget.zcdp(0.5), misfits=[problem.misfit])
    return [(each.excess_risk, each.excess_risk_std, each.parameter_error) for each in found]


CALLS: dict[str, Callable[[], Any]] = {
    "one-pass DP-GD, noise on the output": partial(drawn, 0.0),
    "one-pass DP-GD, noise on every step": partial(drawn, 0.5),
    "isotropic, noise on the output": partial(isotropic, 0.0),
    "isotropic, noise on every step": partial(isotropic, 0.5),
    "one-pass DP-GD, given samples": lambda: one_pass_dpgd.fit(
        mechanism(0.5), *data(), generator()
    ),
    "one-pass DP-GD, one setting": lambda: one_pass_dpgd.fit(
        mechanism(0.5, (3.0,)), *data(), generator()
    ),
    "one-pass DP-GD, few columns": few_columns,
    "clipped gradients": clipped,
    "noisy SGD": noisy,
    "fixed order": fixed_order,
    "worst pairs": pairs,
    "diffusion": diffusion,
    "deterministic equivalent": equivalent,
    "DP-FTRL": ftrl,
    "DP-FTRL, simulated": ftrl_risks,
    "shaped DP-FTRL": shaped,
    "integer gradients": integer_gradients,
    "many normals": many_normals,
    "records": records,
    "predictions": partial(predicted, "gaussian"),
    "predictions, one-hot": partial(predicted, "one_hot"),
    "grid": lambda: discrete.round_to_grid(data()[0], norm=1.0),
    "buffered noise": buffered,
    "inverse coefficients": lambda: toeplitz.inverse_coefficients(
        toeplitz.damped_square_root(SIZE, damping=0.1)
    ),
    "second moments": lambda: np.array(
        [
            private_risk(
                np.linspace(0.5, 1.5, DIMENSION),
                covariance=np.ones(DIMENSION),
                noise_std=1.0,
                step_size=0.01,
                sample_size=SIZE,
            )
        ]
    ),
    "error curve": lambda: vars(
        error_curve(
            np.linspace(0.5, 1.5, DIMENSION), step_size=0.01, coefficients=[1.0, -0.5], steps=SIZE
        )
    ).values(),
}


def digest(result: Any) -> str:
    arrays = [np.asarray(part) for part in ([result] if isinstance(result, np.ndarray) else result)]
    assert all(array.dtype.kind in "fi" for array in arrays)
    text = b"".join(array.tobytes() for array in arrays)
    return hashlib.sha256(text).hexdigest()


def main(order: str) -> dict[str, Any]:
    names = list(CALLS) if order == "forwards" else list(reversed(CALLS))
    digests = {name: digest(CALLS[name]()) for name in names}
    kernels = [
        found
        for found in gc.get_objects()
        if isinstance(found, Dispatcher) and found.__module__.startswith("privreg.")
    ]
    inlined = {found for found in kernels if found.targetoptions.get("inline") == "always"}
    missed = {found.__name__ for found in kernels if not found.signatures} - {
        found.__name__ for found in inlined
    }
    loaded = sum(sum(found.stats.cache_hits.values()) for found in kernels)
    return {"digests": digests, "missed": sorted(missed), "loaded": loaded}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1])))
