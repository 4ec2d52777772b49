"""The risk of one-pass DP-GD over the whole documented domain, from 1e-32 to 1e32."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest

from privreg.accuracy import AccuracyWarning
from privreg.schedules import Polynomial
from privreg.spectra import Spectrum
from privreg.theory.one_pass_dpgd import deterministic_equivalent

END = 32.0


def exact(
    spectrum: Spectrum, signal: np.ndarray, *, rate: float, gamma: float, noise: float
) -> mp.mpf:
    """Risk at the end, by eigenvectors of the linear equations of the modes without clipping."""
    ratio, zeta = mp.mpf(gamma), mp.mpf(noise)
    taken = min(mp.mpf(rate), 2 / ratio)
    values, weights, start = (
        [mp.mpf(float(x)) for x in each]
        for each in (spectrum.eigenvalues, spectrum.weights, signal)
    )
    n = len(values)
    matrix = mp.zeros(n + 1, n + 1)
    for i in range(n):
        for j in range(n):
            matrix[i, j] += values[i] * taken**2 * ratio * weights[j] * values[j]
        matrix[i, i] -= 2 * values[i] * taken
        matrix[i, n] = values[i] * taken**2 * ratio * zeta**2 / 2
    powers, basis = mp.eig(matrix)
    parts = mp.lu_solve(basis, mp.matrix([*start, 1]))
    end = basis * mp.matrix([mp.exp(powers[k]) * parts[k] for k in range(n + 1)])
    return mp.re(mp.fsum(weights[i] * values[i] * end[i] for i in range(n)))


@pytest.mark.filterwarnings("always::privreg.accuracy.AccuracyWarning")
def test_risk_without_clipping_is_that_of_its_linear_equations(
    recwarn: pytest.WarningsRecorder,
) -> None:
    """A constant rate; it is right to 1e-6, warns, or is refused by name."""
    right = 0
    for seed in range(80):
        rng = np.random.default_rng(seed)
        size = rng.uniform
        count = int(rng.integers(1, 4))
        spread = rng.choice([0.0, 1.0, 6.0, 30.0]) * size(-1, 0, count)
        values = np.minimum(10.0 ** (size(-30, 30) + spread), 1e32)
        shares = size(0.1, 1, count)
        spectrum = Spectrum(values, shares / shares.sum())
        gamma, signal = 10.0 ** size(-END, END), 10.0 ** size(-END, END, count)
        noise = float(rng.choice([0.0, 10.0 ** size(-END, END)]))
        near = 10.0 ** size(-4, 4) if rng.random() < 0.7 else 10.0 ** size(-1, 1) / gamma
        rate = float(np.clip(near / values.max(), 10**-END, 10**END))
        recwarn.clear()
        try:
            found = deterministic_equivalent.solve(
                spectrum,
                Polynomial(rate, 0.0),
                aspect_ratio=gamma,
                zcdp_root=np.inf,
                clip_constant=np.inf,
                label_noise_std=noise,
                signal=signal,
                times=[1.0],
            ).risk[-1]
        except ValueError as error:
            if "double precision" not in str(error):
                raise
            continue
        with mp.workdps(80):
            try:
                wanted = exact(spectrum, signal, rate=rate, gamma=gamma, noise=noise)
            except RuntimeError:
                # The eigenvectors were not found.
                continue
            off = abs(mp.mpf(found) - wanted) > 1e-6 * abs(wanted) + mp.mpf("1e-280")
        assert not off or any(issubclass(w.category, AccuracyWarning) for w in recwarn), seed
        right += not off
    assert right > 60
