r"""The stochastic differential equation whose risk is that of one-pass DP-GD in high dimension.

.. math:: \mathrm d\Theta = -\bar\eta\,\mu_c\,\nabla\mathcal P\,\mathrm dt
    + \bar\eta\,\sqrt{\frac{2\nu_c\,\mathcal P\,\Sigma}{n}}\,\mathrm dB
    + \frac{2\sqrt d}{n}\,c\,\tilde\sigma\,\mathrm dB',
    \qquad \mathcal P = \mathcal R + \tfrac12\zeta^2

where mu_c and nu_c are those of the current excess risk :math:`\mathcal R(\Theta)`.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from privreg.models import LinearModel
from privreg.ranges import short
from privreg.schedules import Schedule, require_schedule
from privreg.sums import inner_product
from privreg.theory.one_pass_dpgd.settings import require_falling, require_scalars
from privreg.validation import (
    require_answer,
    require_array,
    require_choice,
    require_count,
    require_instance,
    require_number,
    require_rng,
)

Form = Literal["corrected", "printed"]
DRIFTS: dict[Form, float] = {"corrected": 1.0, "printed": 2.0}


def risk_path(
    model: LinearModel,
    schedule: Schedule,
    rng: np.random.Generator,
    *,
    sample_size: int,
    zcdp_root: float,
    clip_constant: float,
    times: ArrayLike,
    steps: int | None = None,
    form: Form = "corrected",
) -> NDArray[np.float64]:
    """Excess risk along one path, by the Euler-Maruyama method (strong order 1/2, weak order 1).

    It is the risk before the noise that is added to the output alone, shape (times,).

    Parameters
    ----------
    model : LinearModel
        Covariance, target and label noise; the path starts from zero.
    schedule : Schedule
        Learning rate, with one amplitude, that does not rise under private noise.
    rng : Generator
        Draws the Brownian increments: one Gaussian a coordinate and step, because the two Brownian
        motions are independent and the covariance is diagonal.
    sample_size : int
        n, at least 1.
    zcdp_root : float
        rho, more than 0; `inf` for no noise.
    clip_constant : float
        Clipping constant c in units of the residual, more than 0 and finite.
    times : array_like, shape (times,)
        Increasing, in [0, 1]; each is rounded to a step.
    steps : int, optional
        Steps of the method, `sample_size` if left out.
    form : {"corrected", "printed"}
        With the drift above, or with twice that drift, as the paper prints it.

    Source
    ------
    bombari2025, equations (4.14) and (C.1), whose drift has a spurious factor 2: it agrees neither
    with its own equation (C.9) nor with (4.7).
    """
    require_choice("form", form, DRIFTS)
    require_instance("model", model, LinearModel)
    require_rng("rng", rng)
    require_schedule(schedule)
    sample_size = require_count("sample_size", sample_size)
    count = sample_size if steps is None else require_count("steps", steps)
    (zcdp_root,) = require_scalars(zcdp_root=zcdp_root)
    (clip_constant,) = require_scalars(infinite=False, clip_constant=clip_constant)
    wanted = require_array("times", times, shape=(None,), least=0, most=1)
    if np.any(np.diff(wanted) < 0):
        raise ValueError(f"times must be increasing within [0, 1], got {short(wanted)}")
    rates = require_number("schedule", schedule.amplitude) * schedule.shape(
        np.linspace(0, 1, count + 1)
    )
    gamma = model.dimension / sample_size
    # The private noise of a step is exact: the integral of its variance is a difference.
    private = 2 * math.sqrt(model.dimension) * clip_constant / (sample_size * zcdp_root)
    if private > 0:
        require_falling(rates)
    increments = private * np.sqrt(np.maximum(rates[:-1] ** 2 - rates[1:] ** 2, 0))
    found = np.empty(len(wanted))
    _paths(
        rng,
        model.eigenvalues,
        -model.target,
        model.label_noise_std**2 / 2,
        DRIFTS[form] * np.minimum(rates[:-1], 2 / gamma) / count,
        np.minimum(rates[:-1], 2 / gamma) * math.sqrt(2 / (sample_size * count)),
        increments,
        clip_constant,
        np.round(wanted * count).astype(np.int64),
        found,
    )
    return require_answer("schedule and clip_constant", found)


@njit(cache=True, nogil=True)
def _paths(  # type: ignore[no-untyped-def]
    rng,
    eigenvalues,
    start,
    half_variance,
    drift,
    diffusion,
    private,
    clip_constant,
    record,
    risk_out,
):
    deviation = start.copy()
    kicks, scaled = np.empty(len(start)), np.empty(len(start))
    recorded = 0
    for step in range(len(drift) + 1):
        for i in range(len(deviation)):
            scaled[i] = eigenvalues[i] * deviation[i]
        risk = inner_product(scaled, deviation) / 2
        while recorded < len(record) and record[recorded] == step:
            risk_out[recorded] = risk
            recorded += 1
        if step < len(drift):
            loss = risk + half_variance
            # Beyond 40 standard deviations nothing is clipped.
            ratio = 40.0 if loss == 0.0 else min(clip_constant / math.sqrt(2 * loss), 40.0)
            descent = math.erf(ratio / math.sqrt(2.0))
            if ratio < 1e-3:
                # The closed form cancels here; the next term of its series is below rounding.
                variance = ratio * ratio * (1 - math.sqrt(8 / (9 * math.pi)) * ratio)
            else:
                variance = (
                    ratio * ratio * (1 - descent)
                    + descent
                    - math.sqrt(2 / math.pi) * ratio * math.exp(-ratio * ratio / 2)
                )
            pull = drift[step] * descent
            kick = diffusion[step] ** 2 * variance * loss
            noise = private[step] ** 2
            for i in range(len(deviation)):
                kicks[i] = math.sqrt(kick * eigenvalues[i] + noise) * rng.standard_normal()
            # Apart from the draws, so that a processor moves several at a time.
            for i in range(len(deviation)):
                deviation[i] += kicks[i] - pull * scaled[i]
