"""The deterministic equivalent of DP-GD against `scipy.integrate.solve_ivp`, within one run.

    python benchmarks/dpgd_ode.py [--rates 41] [--error 1e-4]

Both sides find the risk of the private output for each rate of one learning-rate search in the
design of bombari2025, Figure 2 (phi = 1/4, psi = 1/2, alpha = 1, rho = 1, gamma = 1e-4), on the
same quadrature of the power law. scipy gets the exact Jacobian, and of its stiff methods and
tolerances the quickest that keeps the error asked for (BDF, left out, takes ten times as long as
Radau); both sides get the loosest tolerance that does. Then the quadrature is compared with
explicit modes, d = 100,000, at gamma = 1e-3 and the best rate there; for smaller ratios the modes
themselves are too few. It fails if the error is exceeded, the ratio is below 30 or the quadrature
is off by more than 1e-6.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from functools import partial
from time import perf_counter

# Threads only slow down matrices of this size.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from scipy.integrate import solve_ivp
from scipy.special import erf

from privreg import spectra
from privreg.schedules import Polynomial
from privreg.spectra import Spectrum
from privreg.theory.one_pass_dpgd import deterministic_equivalent

PHI, PSI, ALPHA, GAMMA, CLIP, NOISE_STD = 0.25, 0.5, 1.0, 1e-4, 0.1, 0.3
METHODS = ("LSODA", "Radau")
TOLERANCES = (1e-3, 3e-4, 1e-4, 3e-5, 1e-5, 1e-6)
LARGER_GAMMA = 1e-3


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rates", type=int, default=41)
    parser.add_argument("--error", type=float, default=1e-4)
    arguments = parser.parse_args()
    spectrum = spectra.power_law(PHI)
    rates = np.geomspace(0.05 / CLIP, 2 / GAMMA, arguments.rates)
    reference = final_risk(spectrum, rates, 1e-8)
    check = by_scipy(spectrum, rates[-1:], "Radau", 1e-9)[0] / reference[-1] - 1

    for own in TOLERANCES:
        fast, found = best_time(partial(final_risk, spectrum, rates, own), 9)
        error = np.abs(found / reference - 1).max()
        if error <= arguments.error:
            break
    slow, method, tolerance, scipy_error = np.inf, "", 0.0, np.inf
    for candidate in METHODS:
        for rtol in TOLERANCES:
            # A search that misses the error at a few rates need not be timed at all of them.
            few = np.abs(by_scipy(spectrum, rates[::8], candidate, rtol) / reference[::8] - 1)
            if few.max() > arguments.error:
                continue
            spent, values = best_time(partial(by_scipy, spectrum, rates, candidate, rtol), 1)
            largest = np.abs(values / reference - 1).max()
            if largest <= arguments.error:
                print(f"  {candidate:6s} rtol {rtol:.0e}   error {largest:.1e}   {spent:8.3f} s")
                if spent < slow:
                    slow, method, tolerance, scipy_error = spent, candidate, rtol, largest
                break
    quantiles = ((np.arange(100_000) + 0.5) / 100_000) ** (1 / (1 - PHI))
    modes = spectra.explicit(spectra.power_law_edge(PHI) * quantiles)
    at_larger = partial(final_risk, rtol=1e-7, gamma=LARGER_GAMMA)
    best = rates[[np.argmin(at_larger(spectrum, rates))]]
    quadrature, law_value = best_time(partial(at_larger, spectrum, best), 5)
    explicit, modes_value = best_time(partial(at_larger, modes, best), 1)
    distance = abs(law_value[0] / modes_value[0] - 1)
    print(f"rates x modes          {len(rates)} x {spectrum.modes}")
    print(f"reference, by Radau    {abs(check):.1e} (relative distance at the largest rate)")
    print(f"this solver, {own:.0e}     error {error:.1e}   {fast:8.4f} s")
    print(f"{method:5s}, rtol {tolerance:.0e}     error {scipy_error:.1e}   {slow:8.4f} s")
    print(f"ratio of times         {slow / fast:.0f}")
    print(f"quadrature             {law_value[0]:.12e}   {quadrature * 1e3:9.2f} ms")
    print(f"100,000 modes          {modes_value[0]:.12e}   {explicit * 1e3:9.2f} ms")
    print(f"relative difference    {distance:.1e}")
    print(f"ratio of times         {explicit / quadrature:.0f}")
    return int(error > arguments.error or slow / fast < 30 or distance > 1e-6)


def final_risk(
    spectrum: Spectrum, rates: np.ndarray, rtol: float, *, gamma: float = GAMMA
) -> np.ndarray:
    return deterministic_equivalent.solve(
        spectrum,
        Polynomial(rates, ALPHA),
        aspect_ratio=gamma,
        zcdp_root=1.0,
        clip_constant=CLIP,
        label_noise_std=NOISE_STD,
        signal=0.5 * spectrum.eigenvalues**-PSI,
        times=[1.0],
        rtol=rtol,
    ).final_risk


def by_scipy(spectrum: Spectrum, rates: np.ndarray, method: str, rtol: float) -> np.ndarray:
    """The equations as printed, with their exact Jacobian, diagonal plus rank one."""
    values, contribution = spectrum.eigenvalues, spectrum.weights * spectrum.eigenvalues
    start = 0.5 * values**-PSI
    output = []
    for initial in rates:

        def coefficients(t: float, risk: float, rate: float = initial) -> tuple[float, float]:
            taken = min(rate * max(1 - t, 0.0) ** ALPHA, 2 / GAMMA)
            # Trial states of an implicit step may be negative.
            loss = max(risk, 0.0) + NOISE_STD**2 / 2
            ratio = CLIP / np.sqrt(2 * loss)
            descent = erf(ratio / np.sqrt(2))
            variance = (
                ratio**2 * (1 - descent)
                + descent
                - np.sqrt(2 / np.pi) * ratio * np.exp(-(ratio**2) / 2)
            )
            return taken * descent, taken**2 * variance * loss * GAMMA

        def slope(t: float, state: np.ndarray, rate: float = initial) -> np.ndarray:
            drift, kick = coefficients(t, contribution @ state)
            density = 2 * ALPHA * rate**2 * max(1 - t, 0.0) ** (2 * ALPHA - 1)
            noise = 2 * (CLIP * GAMMA) ** 2 * density
            return values * (kick - 2 * drift * state) + noise

        def jacobian(t: float, state: np.ndarray) -> np.ndarray:
            risk = contribution @ state
            drift, kick = coefficients(t, risk)
            step = 1e-6 * risk
            later_drift, later_kick = coefficients(t, risk + step)
            column = values * (later_kick - kick - 2 * (later_drift - drift) * state) / step
            return np.diag(-2 * drift * values) + np.outer(column, contribution)

        found = solve_ivp(
            slope, (0, 1), start, method=method, jac=jacobian, rtol=rtol, atol=rtol * 1e-6
        )
        output.append(contribution @ found.y[:, -1])
    return np.array(output)


def best_time(function: Callable[[], np.ndarray], repeats: int) -> tuple[float, np.ndarray]:
    """Median time after a first call, which is the only one if a single one is asked for."""
    times = []
    for _ in range(repeats + (repeats > 1)):
        start = perf_counter()
        value = function()
        times.append(perf_counter() - start)
    return float(np.median(times[-repeats:])), value


if __name__ == "__main__":
    sys.exit(main())
