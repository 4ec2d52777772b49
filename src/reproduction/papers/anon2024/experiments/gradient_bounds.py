"""Tails of Gaussian features and labels, by which no gradient is clipped, and simulated runs."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from privreg.algorithms import shaped_dp_ftrl
from reproduction.engine import quantities as q
from reproduction.engine.recipe import (
    Axis,
    Dataset,
    Quantity,
    Trial,
    above,
    below,
    close,
    identity,
    per,
    stage,
    stated,
)
from reproduction.engine.summaries import trials_last
from reproduction.papers.anon2024 import gaussian_moments, setting
from reproduction.papers.anon2024.setting import GAUSSIAN_SCALE, SHAPES, generator

PLACE = "Theorem 4.2, Sections 3.1 and B.2.1, Lemmas B.2, B.3, B.12, B.13 and B.16"


class Parameters(setting.Problem):
    """A problem, and the grids of the tail bounds."""

    estimating_rows: q.Count = Field(description="Public labelled rows m of the estimate.")
    degrees: q.Some[q.Count] = Field(description="Ranks of the identity in the bounds.")
    failures: q.LogAxis = Field(description="beta, at most 1/2.")
    public_rows: q.Some[q.Count] = Field(description="Public rows M.")
    horizon: q.Positive = Field(description="N eta of the design in Lemma B.16.")


AXES = {
    "noise_shape": setting.AXES["noise_shape"],
    "public_rows": Axis("public rows M", "public_rows"),
}


@per(
    gradient_over_printed_factors=stated(
        "largest norm of a gradient divided by the feature's norm times the root of the loss",
        where="Section 3.1, equation (1.1)",
        statement="In the norm of Sigma^-1 a gradient is at most as long as the feature times the "
        "root of the loss of equation (1.1).",
        check=below(1.0),
        corrected={
            "holds_with": "the absolute residual, which Section B.2.1 means, in place of that root",
            "evidence": {"variable": "gradient_over_factors"},
            "check": close(1.0, absolute=1e-12),
        },
        id="gradient-and-its-factors",
        kind="prose",
        ours=["largest ratio over 100 rows, iterates and covariances in three dimensions"],
        finding="half-in-the-loss",
    ),
    gradient_over_factors="largest norm of a gradient divided by the feature's norm times the "
    "absolute residual",
)
def factors() -> dict[str, float]:
    rng, printed, exact = generator(4), 0.0, 0.0
    for _ in range(100):
        root = rng.standard_normal((3, 3))
        inverse = np.linalg.inv(root @ root.T + 0.1 * np.eye(3))
        x, iterate, y = rng.standard_normal(3), rng.standard_normal(3), rng.standard_normal()
        residual = float(x @ iterate - y)
        gradient = np.outer(x, x) @ iterate - x * y
        norm = float(np.sqrt(gradient @ inverse @ gradient)) / float(np.sqrt(x @ inverse @ x))
        printed = max(printed, norm / np.sqrt(residual**2 / 2))
        exact = max(exact, norm / abs(residual))
    return {"gradient_over_printed_factors": printed, "gradient_over_factors": exact}


@per(
    norm_constant=stated(
        "least c_1 of Lemma B.2 for the norm",
        where="Lemma B.2",
        statement="A feature's squared Sigma^-1-norm exceeds the first bound of the lemma with "
        "probability at most a constant times beta.",
        check=below(1.0),
        wrong={
            "With log(1/beta)^(1/2) in place of log(1/beta).": "norm_constant_of_the_root",
            "With the largest eigenvalue in place of the trace.": "norm_constant_without_trace",
        },
        id="norm-of-features-b2",
        ours=[
            "c_1 = 1, beta from 1e-12 to 1/2",
            "normal features, sigma_z^2 = 8/3, Sigma = H in 1 to 1024 dimensions",
        ],
    ),
    norm_constant_of_the_root="least c_1 with the root of the logarithm",
    norm_constant_without_trace="least c_1 with the largest eigenvalue in place of the trace",
    product_constant=stated(
        "least c_2 of Lemma B.2 for the product",
        where="Lemma B.2",
        statement="A feature's squared product with a fixed vector exceeds the second bound of the "
        "lemma with probability at most a constant times beta.",
        check=below(2.0),
        id="product-with-features-b2",
        ours=["c_2 = 2, as in the proof", "beta from 1e-12 to 1/2, normal features"],
    ),
    label_exponent=stated(
        "local power of beta in the probability for labels at the least beta",
        where="Lemma B.2",
        statement="Squared label noise exceeds sigma_zeta^2 log(1/beta) with probability at most a "
        "constant times beta.",
        check=above(0.9),
        corrected={
            "holds_with": "K^2 sigma_zeta^2 log(1/beta), K of Assumption 2.3",
            "evidence": {"variable": "product_constant"},
            "check": below(2.0),
        },
        id="label-noise-b2",
        ours=[
            "beta = 1e-12, powers above 0.9 count as 1; corrected: constant 2, beta = 1e-12 to 1/2",
            "Gaussian label noise; at K^2 = 8/3 its tail equals that of x'v with v fixed",
        ],
        finding="label-norm-in-b2",
    ),
    dependent_norm_constant=stated(
        "least c_1 of Lemma B.2 for dependent coordinates",
        where="Theorem 4.2, Lemma B.2",
        statement="The bound on a feature's norm holds under Assumption 2.1, as Theorem 4.2 asks.",
        check=below(2.0),
        wrong={"With sigma_z of Gaussian features.": "dependent_norm_constant_of_gaussians"},
        id="dependent-features-b2",
        kind="theorem",
        ours=[
            "c_1 = 2, beta from 1e-12 to 1/2, Sigma = H in 1 to 1024 dimensions",
            "normal vectors times 2 or 0, with probability 1/4 and 3/4: sigma_z^2 = 25/3",
        ],
    ),
    dependent_norm_constant_of_gaussians="the same c_1 at the sub-Gaussian norm of a normal",
)
def tails(parameters: Parameters) -> dict[str, float]:
    from scipy.stats import chi2

    beta, scale, degrees = parameters.failures.values(), 2 * GAUSSIAN_SCALE, parameters.degrees
    log = np.log(1 / beta)

    def constant(threshold: np.ndarray, rank: int) -> float:
        return (chi2.sf(threshold, rank) / beta).max()

    def dependent(square: float) -> float:
        return max(constant(square * d * log / 2, d) for d in degrees) / 4

    label = chi2.sf(log, 1) / beta
    return {
        "dependent_norm_constant": dependent(25 / 3),
        "dependent_norm_constant_of_gaussians": dependent(GAUSSIAN_SCALE),
        "norm_constant": max(constant(scale * d * log, d) for d in degrees),
        "norm_constant_of_the_root": max(constant(scale * d * log**0.5, d) for d in degrees),
        "norm_constant_without_trace": max(constant(scale * log, d) for d in degrees),
        "product_constant": constant(GAUSSIAN_SCALE * log, 1),
        "label_exponent": 1 + np.log(label[0] / label[1]) / np.log(beta[0] / beta[1]),
    }


@per(
    clipping_chance=stated(
        "largest union bound on a clipped gradient in N steps, times N",
        where="Section B.2.1",
        statement="At the constant 3 (2 gamma_1 gamma_4 tr(Sigma^-1 H))^(1/2) log N a gradient is "
        "clipped in any of N steps with probability at most 1/N. This follows from the tails of "
        "Lemma B.2 at beta = 1/N^3 and a union bound.",
        check=below(1.0),
        wrong={"Without the factor 3.": "clipping_chance_without_three"},
        id="union-bound-of-b21",
        ours=[
            "the trace under the root, as in the section's last line; our text of its first line "
            "has it outside",
            "N = 2 to 1000000, Gaussian features and label noise, Sigma = H in 1 to 1024 "
            "dimensions",
            "label noise has the bound gamma_4 log(1/beta), as label-noise-b2 corrects it",
            "the estimate fails with probability 1/N^10, as in Lemma B.3",
        ],
        note="The section says that beta = 1/N^3 is enough; here beta = 1/N^2 is enough, too.",
    ),
    clipping_chance_without_three="the same bound for the tails at 1/N",
)
def clipping_chances(parameters: Parameters) -> dict[str, float]:
    """Label noise has the factor gamma_4 of the products, too."""
    from scipy.stats import chi2

    sizes, found = np.geomspace(2, 1e6, 61), []
    for power in (3, 1):
        logs = power * np.log(sizes)
        norms = [chi2.sf(2 * GAUSSIAN_SCALE * d * logs, d) for d in parameters.degrees]
        step = np.max(norms, axis=0) + 2 * chi2.sf(GAUSSIAN_SCALE * logs, 1) + sizes**-10
        found.append((sizes**2 * step).max())
    return {"clipping_chance": found[0], "clipping_chance_without_three": found[1]}


@identity(
    id="one-step-b19",
    where="Lemma B.12, equation (B.19)",
    statement="The excess of a random step over the mean step is at most beta eta^2 tr(H M) H "
    "for positive semi-definite M.",
    ours=["beta = 3, the kurtosis of a normal", "100 random such M in three dimensions"],
    note="Our text has the random step's operator in both places, one of which may have lost a "
    "tilde. The next display ends with the mean step's operator.",
    check=below(1.0),
)
def one_step_ratio() -> float:
    """Largest excess of a random step, divided by 3 eta^2 tr(H M) H."""
    covariance = gaussian_moments.SPECTRUM
    root = np.sqrt(np.diag(covariance))
    return max(
        np.linalg.eigvalsh((moment - covariance @ matrix @ covariance) / np.outer(root, root))[-1]
        / (3 * np.trace(covariance @ matrix))
        for matrix, moment, _ in gaussian_moments.fourth_moments()
    )


@per(
    leave_one_out_ratio=stated(
        "the sum of (B.21) divided by the trace; of 20 draws, the ratio farthest from 1",
        where="Section B.5.7, equations (B.20) and (B.21)",
        statement="tr(Sigma^-1 H) is M times the sum of "
        "lambda_i / (lambda + lambda_i z_i' A_{-i}^-1 z_i).",
        check=close(1.0, absolute=1e-10),
        wrong={"With the forms of A in place of A_{-i}.": "with_own_direction"},
        id="trace-by-leave-one-out-b21",
        ours=["20 drawn designs of 8 public rows, eigenvalues i^-1.5, d = 12, lambda = 0.5"],
    ),
    with_own_direction="the same quotient with z_i' A^-1 z_i in the sum",
)
def leave_one_out() -> dict[str, float]:
    rng, lam, ridge, ratios = generator(6), setting.power_law(12, 1.5), 0.5, []
    for _ in range(20):
        z = rng.standard_normal((8, 12))
        shape = (ridge * np.eye(12) + (z * np.sqrt(lam)).T @ (z * np.sqrt(lam))) / len(z)
        trace = np.trace(np.linalg.solve(shape, np.diag(lam)))
        whole = np.eye(len(z)) + (z * (lam / ridge)) @ z.T
        for others in (lam / ridge, 0 * lam):
            forms = [
                column @ np.linalg.solve(whole - own * np.outer(column, column), column)
                for column, own in zip(z.T, others, strict=True)
            ]
            ratios.append(len(z) * np.sum(lam / (ridge + lam * np.array(forms))) / trace)
    without, own = (max(ratios[k::2], key=lambda ratio: abs(ratio - 1)) for k in (0, 1))
    return {"leave_one_out_ratio": without, "with_own_direction": own}


@identity(
    id="tail-of-a-form-b13",
    where="Lemma B.13",
    statement="Squared norms of sub-Gaussian vectors have the printed exponential tail.",
    ours=["c = 1, t = 0.01 to 10000", "normal vectors, B an identity matrix of 1 to 1024 rows"],
    check=above(1.0),
)
def tail_constant(parameters: Parameters) -> float:
    """Least c of Lemma B.13 over ranks and t."""
    from scipy.stats import chi2

    excess = np.geomspace(1e-2, 1e4, 400)
    return min(
        (-chi2.logsf(GAUSSIAN_SCALE * d + excess, d) * GAUSSIAN_SCALE / excess).min()
        for d in parameters.degrees
    )


@per(
    error_given_no_clip=stated(
        "mean squared error after N steps given no clip, divided by B_N of Theorem B.5",
        where="Section B.2.1, Theorem 4.2",
        statement="With probability 1 - 1/N or more no gradient is clipped. In this event the "
        "bounds of Theorem B.5 and Lemma B.6, derived without clipping, can be used.",
        check=below(1.0),
        corrected={
            "slip": "proof",
            "holds_with": "the factor 1 / (1 - 1/N): up to the first clip both runs are the same",
            "check": below(1 / (1 - 1 / 16)),
            "wrong": {"With the factor 1 + 1/(2N).": below(1 + 1 / 32)},
        },
        id="expectations-without-clipping",
        ours=["one Gaussian feature, no noise (C_t = 0), N = 16, eta = 1/20, P(a clip) = 1/N^2"],
        finding="expectations-given-no-clip",
        note="The clipped steps would have learnt most. The theorem's eta is at most 1/519.",
    )
)
def error_given_no_clip() -> float:
    """Error without label noise, where a gradient is clipped if x^2 exceeds a constant."""
    from scipy.integrate import quad
    from scipy.stats import norm

    size, eta = 16, 0.05
    largest = norm.isf(0.5 / size**2)
    shrunk, _ = quad(lambda x: 2 * norm.pdf(x) * (1 - eta * x**2) ** 2, 0, largest)
    return float((shrunk / (1 - size**-2) / (1 - 2 * eta + 3 * eta**2)) ** size)


theory = stage(AXES, blocks_of=globals())


@per(
    largest_gradient=Quantity("largest gradient divided by its clip norm", "noise_shape"),
    least_estimate="least squared residual estimate divided by the true mean square",
    least_form=Quantity("least form of Lemma B.16 divided by its bound at C = 1", "public_rows"),
)
def run(parameters: Parameters, trial: Trial) -> dict:
    """Algorithm 1 without noise at the theorem's constant and step size; Lemma B.16's forms."""
    lam, eta = parameters.eigenvalues, parameters.step_cap
    rows = parameters.model.sample(parameters.sample_size, trial.rng)
    estimating = parameters.model.sample(parameters.estimating_rows, trial.rng)
    gradients, forms = [], []
    for name in SHAPES:
        shape = parameters.shape(name, eta)
        constant = parameters.clip_constant(shape)
        iterate, largest, least = np.zeros(parameters.dimension), 0.0, np.inf
        for x, y in zip(*rows, strict=True):
            scale = shaped_dp_ftrl.public_residual_scale(*estimating, iterate)
            residual = float(x @ iterate - y)
            norm = float(np.sqrt(np.sum((x * residual) ** 2 / shape)))
            largest = max(largest, norm / (constant * scale))
            truth = lam @ (iterate - parameters.target) ** 2 + parameters.label_noise_std**2
            least = min(least, scale**2 / float(truth))
            iterate = iterate - eta * x * residual
        gradients.append(largest)
    for count in parameters.public_rows:
        ridge = count / parameters.horizon
        normals = trial.rng.standard_normal((count, lam.size))
        _, bound = setting.public_bounds(lam, count, ridge)
        forms.append(setting.leave_one_out_forms(lam, normals, ridge).min() / bound)
    return {"largest_gradient": gradients, "least_estimate": least, "least_form": forms}


@per(
    largest_gradient=Quantity("largest gradient / clip norm in all runs", "noise_shape"),
    underestimates="share of runs in which an estimate is below the truth",
    least_form=Quantity("least form of Lemma B.16 divided by its bound at C = 1", "public_rows"),
)
def worst(simulation: Dataset) -> dict:
    return {
        "largest_gradient": trials_last(simulation.largest_gradient).max(axis=-1),
        "underestimates": (simulation.least_estimate.values < 1).mean(),
        "least_form": trials_last(simulation.least_form).min(axis=-1),
    }


simulate = stage(AXES, run)
summarise = stage(AXES, worst)
