"""Frequency-domain steps of Appendix C: transfer functions, sensitivities, directions' shares."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from reproduction.engine import quantities as q
from reproduction.engine.recipe import (
    Axis,
    above,
    below,
    between,
    every,
    identity,
    per,
    stage,
    stated,
)
from reproduction.papers.choquettechoo2024.regression import (
    FAMILY,
    FAMILY_NAMES,
    Covariance,
    coefficients,
    family_noise,
    stationary,
)

PLACE = "Properties C.1, C.8 and C.9, Lemma C.6, Theorem C.15, Remarks C.16 and C.23, Section F.1"
SPECTRUM = "eigenvalues 1/k, d = 16, nu = eta mu"
TRANSFORMS = {"exp(+iwt)": 1, "exp(-iwt)": -1}


class Parameters(Covariance):
    """One covariance, step sizes of the bound, one step size of the driven systems."""

    dimension: q.Plural[q.Dimension] = Field(description="d.")
    decay: Annotated[q.Decay, Field(ge=0.01)] = Field(description="a of the eigenvalues k^-a.")
    step_shares: q.ShareAxis = Field(description="Step size times R^2, below 1.")
    driven_share: q.Probability = Field(description="Step size times R^2 of driven systems.")
    frequencies: q.Some[q.Finite] = Field(description="Frequencies that drive them.")
    section: q.Plural[q.Count] = Field(description="Size of the finite sections of T.")

    @property
    def step_size(self) -> float:
        """Step size of the driven systems."""
        return self.driven_share / self.moment

    @property
    def damping(self) -> float:
        return float(self.step_size * self.eigenvalues.min())

    def direction_shares(self, family: str, damping: float | None = None) -> np.ndarray:
        """Err_j of equation (44) by quadrature, at nu = eta mu unless another is given."""
        from privreg.theory.correlated_noise import stationary as integrals

        nu = damping or self.damping
        grid, weights = integrals.frequency_rule(nu)
        load = weights * family_noise(family, nu).power(grid)
        distances = (integrals.squared_distance(grid, self.step_size * v) for v in self.eigenvalues)
        pairs = zip(self.eigenvalues, distances, strict=True)
        return np.array([v * load @ (1 / distance) for v, distance in pairs])


AXES = {
    "family": FAMILY,
    "step_share": Axis("step size times R^2", "step_shares"),
    "transform": Axis("kernel of the Fourier transform", tuple(TRANSFORMS)),
}


@identity(
    "family",
    id="limiting-sensitivity-c1",
    kind="theorem",
    where="Equation (5), equation (28)",
    statement="For the paper's coefficients, by Property C.1, the squared limiting sensitivity, if "
    "finite, is the mean of 1/|B|^2 over frequencies.",
    ours=[SPECTRUM, f"eta = 0.5 / R^2; {FAMILY_NAMES}, with bounded causal inverses"],
    check=every(below(1e-9)),
    note="In the time domain the squared sensitivity is the squared norm of the first column of "
    "the inverse, over 20 / nu steps.",
)
def sensitivity_error(parameters: Parameters, family: str) -> float:
    """Relative distance of the sensitivity in the time domain from that in frequency."""
    from privreg.noise import toeplitz
    from privreg.theory.correlated_noise import stationary as integrals

    damping = parameters.damping
    steps = int(20 / damping)
    encoder = {
        "independent": toeplitz.identity(2),
        "damped_square_root": toeplitz.damped_square_root_encoder(steps, damping=damping),
        "damped_anti_pgd": (1 - damping) ** np.arange(steps),
    }[family]
    grid, weights = integrals.frequency_rule(damping)
    by_rule = weights @ (1 / family_noise(family, damping).power(grid)) / (2 * np.pi)
    return float(abs(encoder @ encoder / by_rule - 1))


@identity(
    id="operators-are-positive-c6",
    where="Lemma C.6",
    statement="If 0 < eta lambda_1 < 1, the operators T_j and T are positive semi-definite.",
    ours=[
        "eigenvalues 1/k, d = 16, eta = 0.5 / R^2",
        "finite sections of 300 rows at the largest and the least eigenvalue",
    ],
    check=above(1.0),
)
def least_section_eigenvalue(parameters: Parameters) -> float:
    """Least eigenvalue of a finite section of T_j, divided by its limit."""
    from scipy.linalg import eigvalsh, toeplitz

    powers = np.arange(parameters.section)
    # The limit is b/(2 - b), the least value of the symbol of T_j for the rate b = eta lambda_j.
    return min(
        float(eigvalsh(toeplitz((1 - b) ** powers), subset_by_index=[0, 0])[0] * (2 - b) / b)
        for b in parameters.step_size * parameters.eigenvalues[[0, -1]]
    )


@identity(
    id="transfer-function-c8",
    where="Section C.2.2, equation (37)",
    statement="By Property C.8 the transfer function of the system (37) is -eta M_omega.",
    ours=[
        "inputs exp(i omega t), as in the property's proof and in Section F.1",
        "eigenvalues 1/k, d = 16, eta = 0.5 / R^2, frequencies 0 to 3",
    ],
    check=below(1e-9),
)
def gradient_response_error(parameters: Parameters) -> float:
    """Relative distance of a driven system (37) from Property C.8."""
    eigenvalues, eta = parameters.eigenvalues, parameters.step_size
    steps = int(40 / (eta * eigenvalues.min()))
    worst = 0.0
    for frequency in parameters.frequencies:
        wave = np.exp(1j * frequency * np.arange(steps + 1))
        found = _driven(eigenvalues, eta, eta * wave[:-1]) / wave[-1]
        expected = -_response(frequency, eta, eigenvalues)
        worst = max(worst, float(np.abs(found / expected - 1).max()))
    return worst


@per(
    "transform",
    noise_response_error=stated(
        "relative distance of a driven system (38) from Property C.9",
        where="Section C.2.2, equations (27) and (38)",
        statement="By Property C.9 the transfer function of the system (38) from the noise is eta "
        "B(omega) M_omega, with B of equation (27).",
        select={"transform": "exp(+iwt)"},
        check=below(1e-9),
        corrected={
            "holds_with": "the kernel exp(-i omega t) of Section F.1",
            "evidence": {"select": {"transform": "exp(-iwt)"}},
        },
        id="transfer-function-c9",
        ours=[SPECTRUM, "nu-DP-FTRL, eta = 0.5 / R^2, frequencies 0 to 3"],
        finding="two-signs-of-the-transform",
    ),
)
def noise_response_error(parameters: Parameters) -> np.ndarray:
    """Relative distance of a driven system (38) from Property C.9, for each kernel."""
    from scipy.signal import fftconvolve

    eigenvalues, eta = parameters.eigenvalues, parameters.step_size
    steps = int(60 / (eta * eigenvalues.min()))
    beta = coefficients("damped_square_root", steps, parameters.damping)
    errors = []
    for frequency in parameters.frequencies:
        wave = np.exp(1j * frequency * np.arange(steps + 1))
        noise = fftconvolve(beta, wave[:-1])[:steps]
        found = _driven(eigenvalues, eta, -eta * noise) / wave[-1]
        response = _response(frequency, eta, eigenvalues)
        times = 1j * frequency * np.arange(steps)
        transforms = [beta @ np.exp(sign * times) for sign in TRANSFORMS.values()]
        errors.append([np.abs(found / (each * response) - 1).max() for each in transforms])
    return np.max(errors, axis=0)


@identity(
    "family",
    "step_share",
    id="order-of-equation-20",
    where="Equation (20), Theorem C.15",
    statement="For eta < 1/R^2 the private part of the asymptotic suboptimality is of order eta^2 "
    "G^2 / rho times gamma_infinity^2 and the integral of |B|^2 h, from both sides.",
    kind="theorem",
    ours=[SPECTRUM, FAMILY_NAMES, "normal features, eta R^2 1e-4 to 0.9", "constant 0.039 to 0.07"],
    check=every(between(0.039, 0.07)),
)
def frequency_order(parameters: Parameters, family: str, step_share: float) -> float:
    """Private excess risk divided by the private part of equation (20), with h by quadrature."""
    from privreg.theory.correlated_noise import stationary as integrals
    from privreg.theory.correlated_noise.stationary import regression_response

    eigenvalues, eta = parameters.eigenvalues, float(step_share / parameters.moment)
    noise = family_noise(family, float(eta * eigenvalues.min()))
    grid, weights = integrals.frequency_rule(min(1.0, float(eta * eigenvalues.min())))
    integral = weights @ (noise.power(grid) * regression_response(grid, eigenvalues, step_size=eta))
    order = eta**2 * noise.squared_sensitivity * float(integral)
    return stationary(eigenvalues, eta, noise).excess_risk / order


@identity(
    id="directions-of-noisy-sgd-c16",
    kind="prose",
    where="Remark C.16, Section 2.2",
    statement="In Noisy-SGD, eta < 1/R^2, each eigendirection contributes a constant to the error.",
    ours=[
        "eigenvalues 1/k, d = 16, eta = 0.5 / R^2",
        "constant: within a factor of 2 for all directions, by Corollary C.5",
    ],
    note="Equation (44) is 2 pi / (eta (2 - eta lambda_j)), which depends on the step size; "
    "Theorem C.15 multiplies it by eta^2.",
    check=below(2.0),
)
def independent_share_spread(parameters: Parameters) -> float:
    """Largest share of an eigendirection divided by the least, for Noisy-SGD."""
    shares = parameters.direction_shares("independent")
    return shares.max() / shares.min()


@per(
    correlated_share_constant=stated(
        "largest share of an eigendirection divided by its eigenvalue times log(8/nu)",
        where="Remark C.23, Remark C.16",
        statement="In nu-Noisy-FTRL with nu at most eta mu an eigendirection contributes at most a "
        "constant times lambda_j log(1/nu).",
        check=below(2.6123),
        wrong={"At most a constant times lambda_j.": "plain_share_constant"},
        id="directions-of-noisy-ftrl-c23",
        kind="prose",
        ours=[
            "eigenvalues 1/k, d = 16",
            "log(8/nu), in place of log(1/nu), and the constant 128/49 of Lemma C.21",
            "step sizes from 5e-5 / R^2 to 0.5 / R^2, nu = eta mu and eta mu / 100",
        ],
    ),
    plain_share_constant="the share with the logarithm of the largest step size at every step size",
)
def correlated_shares(parameters: Parameters) -> dict[str, float]:
    least, largest, plain = np.log(8 / parameters.damping), 0.0, 0.0
    for tenths in range(5):
        share = parameters.driven_share / 10.0**tenths
        at = parameters.model_copy(update={"driven_share": share})
        for damping in (at.damping, at.damping / 100):
            found = (at.direction_shares("damped_square_root", damping) / at.eigenvalues).max()
            largest = max(largest, found / np.log(8 / damping))
            plain = max(plain, found / least)
    return {"correlated_share_constant": largest, "plain_share_constant": plain}


@identity(
    id="white-noise-variance-f2",
    where="Theorem F.2",
    statement="The output covariance of an asymptotically stable, linear, time-invariant system "
    "driven by stationary white noise is the mean of G Sigma G* over frequencies.",
    ours=["a random system of three states against the discrete Lyapunov equation"],
    check=below(1e-10),
)
def white_noise_error() -> float:
    """Relative distance of Theorem F.2 from Lyapunov's equation."""
    from scipy.linalg import solve_discrete_lyapunov

    rng = np.random.Generator(np.random.SFC64(1))
    states = rng.standard_normal((3, 3))
    states *= 0.9 / np.abs(np.linalg.eigvals(states)).max()
    inputs, outputs = rng.standard_normal((3, 3)), rng.standard_normal((2, 3))
    root = rng.standard_normal((3, 3))
    covariance = root @ root.T
    exact = outputs @ solve_discrete_lyapunov(states, inputs @ covariance @ inputs.T) @ outputs.T
    # The trapezoidal rule converges geometrically for a periodic analytic integrand.
    found = np.zeros((2, 2), dtype=complex)
    count = 2000
    for frequency in 2 * np.pi * np.arange(count) / count:
        transfer = outputs @ np.linalg.solve(np.exp(1j * frequency) * np.eye(3) - states, inputs)
        found += transfer @ covariance @ transfer.conj().T / count
    return float(np.abs(found - exact).max() / np.abs(exact).max())


theory = stage(AXES, blocks_of=globals())


def _response(frequency: float, eta: float, eigenvalues: np.ndarray) -> np.ndarray:
    """Eta M_omega of equation (35)."""
    return eta / (1 - np.exp(1j * frequency) - eta * eigenvalues)


def _driven(eigenvalues: np.ndarray, eta: float, drive: np.ndarray) -> np.ndarray:
    """z of z_{t+1} = (1 - eta lambda) z_t + drive_t after the last step."""
    distance = np.arange(drive.size)[::-1]
    return np.array([(1 - eta * v) ** distance @ drive for v in eigenvalues])
