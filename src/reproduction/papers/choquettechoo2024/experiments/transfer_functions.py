"""Frequency-domain steps of Appendix C: transfer functions, sensitivities, shares of directions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from reproduction.experiment.datasets import variable
from reproduction.experiment.parameters import Strict
from reproduction.experiment.quantities import (
    Count,
    Deviation,
    Dimension,
    Finite,
    LogAxis,
    Power,
    Probability,
    Some,
)
from reproduction.papers.choquettechoo2024.regression import power_law

if TYPE_CHECKING:
    import xarray as xr

    from privreg.theory.correlated_noise.stationary_noise import StationaryNoise

PLACE = "Properties C.1, C.8 and C.9, Lemma C.6, Theorem C.15, Remarks C.16 and C.23, Section F.1"
FAMILIES = ("independent", "damped_square_root", "damped_anti_pgd")
KURTOSIS = 3.0


class Parameters(Strict):
    """One covariance, step sizes of the bound, one step size of the driven systems."""

    dimension: Dimension = Field(description="d.")
    decay: Power = Field(description="a of the eigenvalues k^-a.")
    step_shares: LogAxis = Field(description="Step size times R^2, below 1.")
    driven_share: Probability = Field(description="Step size times R^2 of driven systems.")
    frequencies: Some[Finite] = Field(description="Frequencies that drive them.")
    section: Annotated[Count, Field(ge=2)] = Field(description="Size of the finite sections of T.")
    label_noise_std: Deviation = Field(description="Standard deviation of the label noise.")

    @property
    def derived_steps(self) -> float:
        """Memories of the systems, in steps up to a factor."""
        least = power_law(self.dimension, self.decay).min()
        return float(1 / (self.driven_share * least) + np.sum(1 / (self.step_shares.low * least)))


def theory(parameters: Parameters) -> xr.Dataset:
    """Errors of the identities, ratios to the bounds."""
    import xarray as xr

    from privreg.theory.correlated_noise.bounds import fourth_moment_bound

    eigenvalues = power_law(parameters.dimension, parameters.decay)
    moment = fourth_moment_bound(eigenvalues)
    shares = parameters.step_shares.values()
    eta = parameters.driven_share / moment
    over = np.zeros((len(FAMILIES), len(shares)))
    for (row, column), _ in np.ndenumerate(over):
        over[row, column] = _over_frequency_bound(
            eigenvalues,
            float(shares[column] / moment),
            moment,
            FAMILIES[row],
            parameters.label_noise_std,
        )
    damping = float(eta * eigenvalues.min())
    independent = _direction_shares(eigenvalues, eta, _noise("independent", damping))
    correlated = _direction_shares(eigenvalues, eta, _noise("damped_square_root", damping))
    plus, minus = _driven_errors(eigenvalues, eta, parameters.frequencies)
    return xr.Dataset(
        {
            "sensitivity_error": variable(
                "family",
                [_sensitivity_error(name, damping) for name in FAMILIES],
                "relative distance of the sensitivity in time from that in frequency",
            ),
            "least_section_eigenvalue": variable(
                (),
                _least_section_eigenvalue(eigenvalues, eta, parameters.section),
                "least eigenvalue of a finite section of T_j over its value in the limit",
            ),
            "gradient_response_error": variable(
                (),
                _gradient_response_error(eigenvalues, eta, parameters.frequencies),
                "relative distance of a driven system (37) from Property C.8",
            ),
            "noise_response_error": variable(
                "transform",
                [plus, minus],
                "relative distance of a driven system (38) from Property C.9",
            ),
            "over_frequency_bound": variable(
                ("family", "step_share"), over, "exact excess risk over C.15, h by quadrature"
            ),
            "independent_share_spread": variable(
                (),
                independent.max() / independent.min(),
                "largest over least share of an eigendirection, Noisy-SGD",
            ),
            "correlated_share_constant": variable(
                (),
                (correlated / (eigenvalues * np.log(8 / damping))).max(),
                "largest share of an eigendirection over its eigenvalue times log(8/nu)",
            ),
            "correlated_share_exponent": variable(
                (),
                np.polyfit(np.log(eigenvalues), np.log(correlated), 1)[0],
                "log-log slope of the shares over the eigenvalues, nu-Noisy-FTRL",
            ),
            "linearity_error": variable((), _lti_errors(eta)[0], "relative error of superposition"),
            "shift_error": variable(
                (), _lti_errors(eta)[1], "relative error of a shifted response"
            ),
            "white_noise_error": variable(
                (),
                _white_noise_error(),
                "relative distance of Theorem F.2 from Lyapunov's equation",
            ),
        },
        coords={
            "family": variable("family", list(FAMILIES), "how the noise is correlated"),
            "step_share": variable("step_share", shares, "step size times R^2"),
            "transform": variable(
                "transform", ["exp(+iwt)", "exp(-iwt)"], "kernel of the Fourier transform"
            ),
        },
    )


def _noise(family: str, damping: float) -> StationaryNoise:
    from privreg.theory.correlated_noise.stationary_noise import StationaryNoise

    if family == "independent":
        return StationaryNoise.independent()
    return getattr(StationaryNoise, family)(damping)


def _sensitivity_error(family: str, damping: float) -> float:
    """The first column of the inverse by back-substitution against the integral of 1/|B|^2."""
    from privreg.noise import toeplitz
    from privreg.theory.correlated_noise.spectral_integrals import frequency_rule

    steps = int(20 / damping)
    encoder = {
        "independent": lambda: toeplitz.identity(2),
        "damped_square_root": lambda: toeplitz.damped_square_root_encoder(steps, damping=damping),
        "damped_anti_pgd": lambda: (1 - damping) ** np.arange(steps),
    }[family]()
    grid, weights = frequency_rule(damping)
    by_rule = weights @ (1 / _noise(family, damping).power(grid)) / (2 * np.pi)
    return float(abs(encoder @ encoder / by_rule - 1))


def _least_section_eigenvalue(eigenvalues: np.ndarray, eta: float, size: int) -> float:
    """Over b/(2 - b), the least value of the symbol of T_j for the rate b = eta lambda_j."""
    from scipy.linalg import eigvalsh, toeplitz

    powers = np.arange(size)
    return min(
        float(eigvalsh(toeplitz((1 - b) ** powers), subset_by_index=[0, 0])[0] * (2 - b) / b)
        for b in eta * np.array([eigenvalues[0], eigenvalues[-1]])
    )


def _gradient_response_error(
    eigenvalues: np.ndarray, eta: float, frequencies: list[float]
) -> float:
    steps = int(40 / (eta * eigenvalues.min()))
    worst = 0.0
    for frequency in frequencies:
        wave = np.exp(1j * frequency * np.arange(steps + 1))
        found = _driven(eigenvalues, eta, eta * wave[:-1]) / wave[-1]
        expected = -eta / (1 - np.exp(1j * frequency) - eta * eigenvalues)
        worst = max(worst, float(np.abs(found / expected - 1).max()))
    return worst


def _driven_errors(
    eigenvalues: np.ndarray, eta: float, frequencies: list[float]
) -> tuple[float, float]:
    """System (38) driven by a wave of noise, against eta B(w) M_w for both signs in B."""
    from scipy.signal import fftconvolve

    from privreg.noise.toeplitz import damped_square_root

    steps = int(60 / (eta * eigenvalues.min()))
    beta = damped_square_root(steps, damping=float(eta * eigenvalues.min()))
    worst = [0.0, 0.0]
    for frequency in frequencies:
        wave = np.exp(1j * frequency * np.arange(steps + 1))
        noise = fftconvolve(beta, wave[:-1])[:steps]
        found = _driven(eigenvalues, eta, -eta * noise) / wave[-1]
        response = eta / (1 - np.exp(1j * frequency) - eta * eigenvalues)
        for place, sign in enumerate((1, -1)):
            transform = beta @ np.exp(sign * 1j * frequency * np.arange(steps))
            error = np.abs(found / (transform * response) - 1).max()
            worst[place] = max(worst[place], float(error))
    return worst[0], worst[1]


def _driven(eigenvalues: np.ndarray, eta: float, drive: np.ndarray) -> np.ndarray:
    """z of z_{t+1} = (1 - eta lambda) z_t + drive_t after the last step."""
    distance = np.arange(drive.size)[::-1]
    return np.array([(1 - eta * v) ** distance @ drive for v in eigenvalues])


def _over_frequency_bound(
    eigenvalues: np.ndarray, eta: float, moment: float, family: str, label_noise_std: float
) -> float:
    from privreg.theory.correlated_noise.linear_regression import stationary_error
    from privreg.theory.correlated_noise.spectral_integrals import frequency_rule
    from privreg.theory.correlated_noise.stationary_noise import regression_response

    noise = _noise(family, float(eta * eigenvalues.min()))
    variance = noise.squared_sensitivity / 2
    grid, weights = frequency_rule(min(1.0, float(eta * eigenvalues.min())))
    integral = weights @ (noise.power(grid) * regression_response(grid, eigenvalues, step_size=eta))
    spread = (1 - np.sqrt(eta * moment)) ** -2
    bound = (1 + spread) * eta * moment * label_noise_std**2
    bound += (1 + KURTOSIS * spread) * eta**2 * variance / np.pi * integral
    exact = stationary_error(
        eigenvalues,
        step_size=eta,
        noise=noise,
        gradient_noise_std=float(variance**0.5),
        label_noise_std=label_noise_std,
    )
    return float(exact.excess_risk / bound)


def _direction_shares(eigenvalues: np.ndarray, eta: float, noise: StationaryNoise) -> np.ndarray:
    """Err_j of equation (44) by quadrature."""
    from privreg.theory.correlated_noise.spectral_integrals import frequency_rule, squared_distance

    grid, weights = frequency_rule(float(eta * eigenvalues.min()))
    load = weights * noise.power(grid)
    return np.array([v * load @ (1 / squared_distance(grid, eta * v)) for v in eigenvalues])


def _lti_errors(eta: float) -> tuple[float, float]:
    """Superposition and shift of system (38), written as a loop."""
    from privreg.noise.toeplitz import damped_square_root

    rng = np.random.Generator(np.random.SFC64(0))
    count, shift = 60, 7
    beta = damped_square_root(count, damping=0.1)

    def system(noise: np.ndarray) -> np.ndarray:
        state, outputs = 0.0, []
        for t in range(count):
            outputs.append(state)
            state = (1 - eta) * state - eta * float(beta[: t + 1] @ noise[t::-1])
        return np.array(outputs)

    one, two = rng.standard_normal((2, count))
    mixed = system(2 * one - 3 * two) - 2 * system(one) + 3 * system(two)
    late = np.concatenate([np.zeros(shift), one[:-shift]])
    moved = system(late)[shift:] - system(one)[:-shift]
    size = np.abs(system(one)).max()
    return float(np.abs(mixed).max() / size), float(np.abs(moved).max() / size)


def _white_noise_error() -> float:
    """A random stable system with three inputs, three states and two outputs."""
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
