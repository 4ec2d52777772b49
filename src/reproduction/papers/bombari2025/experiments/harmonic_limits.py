"""The best harmonic schedule against its limits; the proof's explicit constants and bound."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from pydantic import Field

from privreg import spectra
from privreg.schedules import Harmonic
from reproduction.engine import quantities as q
from reproduction.engine.recipe import Axis, per, stage
from reproduction.papers.bombari2025 import equivalent, setting

PLACE = "Theorem 2, equations (D.105) and (D.109)"
SMALL = 1e-4


class Parameters(setting.Labelled):
    """Two limits on isotropic data, and a range of aspect ratios for the explicit constants."""

    clip_constants: q.Some[q.ClipConstant] = Field(description="Clipping constants c.")
    aspect_ratio: q.AspectRatio = Field(description="gamma at which rho = 1 has its limit.")
    private_aspect_ratio: setting.TinyRatio = Field(
        description="gamma at which rho = gamma^b has its limit."
    )
    privacy_power: q.Share = Field(
        description="Power b of rho = gamma^b, more than 1/2: private noise dominates."
    )
    budgets: q.Some[q.StatedBudget] = Field(description="Budgets for the explicit constants.")
    aspect_ratios: q.Some[q.AspectRatio] = Field(
        description="Values of gamma for the explicit constants."
    )

    _offsets_can_be_fitted = q.must(
        f"aspect_ratios must hold two values of at most {SMALL:g}, got {{self.aspect_ratios}}",
        lambda self: len(self.small) >= 2,
    )

    @property
    def small(self) -> list[float]:
        """Values of gamma on which the slopes of offsets are fitted."""
        return [gamma for gamma in self.aspect_ratios if gamma <= SMALL * (1 + 1e-9)]


AXES = {
    "clip_constant": setting.CLIP_CONSTANT,
    "zcdp_root": Axis(
        "rho of rho^2/2-zCDP", lambda parameters: [budget.root for budget in parameters.budgets]
    ),
    "aspect_ratio": setting.ASPECT_RATIO,
}


@per(
    "clip_constant",
    harmonic_limit="limit of the least risk of the harmonic schedule divided by gamma",
    harmonic_over_limit="least risk of the harmonic schedule divided by its limit, rho = 1",
    harmonic_over_least="least risk of the harmonic schedule divided by that of any schedule",
    private_harmonic_over_limit="least risk of the harmonic schedule divided by its limit where "
    "private noise dominates",
)
def limits(parameters: Parameters, clip_constant: float) -> dict:
    """Near the limits, at a fixed budget and at rho = gamma^b."""
    from privreg.theory.one_pass_dpgd import rates

    def least_risk(gamma: float, rho: float) -> float:
        at = gamma, rho, clip_constant
        return equivalent.tuned(parameters, spectra.isotropic(), setting.HARMONIC, *at).final_risk

    given = {"clip_constant": clip_constant, "label_noise_std": parameters.label_noise_std}
    gamma, private = parameters.aspect_ratio, parameters.private_aspect_ratio
    risk, limit = least_risk(gamma, 1.0), float(rates.sampling_limit(**given))
    rho, private_limit = private**parameters.privacy_power, rates.privacy_limit(**given)
    private_risk = least_risk(private, rho)
    return {
        "harmonic_limit": limit,
        "harmonic_over_limit": risk / gamma / limit,
        "harmonic_over_least": risk / rates.least_risk(aspect_ratio=gamma, **given),
        "private_harmonic_over_limit": private_risk / (private / rho) ** 2 / float(private_limit),
    }


@per(
    "zcdp_root",
    "aspect_ratio",
    explicit_risk_over_bound="risk with the explicit constants of the proof divided by its bound",
)
def explicit(parameters: Parameters, zcdp_root: float, aspect_ratio: float) -> float:
    found = explicit_constants(
        aspect_ratio=aspect_ratio, zcdp_root=zcdp_root, label_noise_std=parameters.label_noise_std
    )
    at = aspect_ratio, zcdp_root, found.clip_constant
    risk = equivalent.solve(parameters, spectra.isotropic(), found.schedule, *at).final_risk.item()
    return risk / found.bound


@per(
    "aspect_ratio",
    text_offset_risk_over_rate="risk with the offset max(gamma, gamma^2/rho^2), divided by gamma + "
    "gamma^2/rho^2",
)
def text_offset_risk_over_rate(parameters: Parameters, aspect_ratio: float) -> float:
    """The offset of the text after Theorem 2, at rho = gamma^b."""
    from privreg.theory.one_pass_dpgd.deterministic_equivalent import descent_factor

    rho, clip_constant = aspect_ratio**parameters.privacy_power, parameters.clip_constants[0]
    descent = descent_factor(
        0.0, clip_constant=clip_constant, label_noise_std=parameters.label_noise_std
    )
    schedule = Harmonic(1.5 * (1 / float(descent)), _text_offset(aspect_ratio, rho))
    at = aspect_ratio, rho, clip_constant
    risk = equivalent.solve(parameters, spectra.isotropic(), schedule, *at).final_risk.item()
    return risk / (aspect_ratio + (aspect_ratio / rho) ** 2)


@per(
    proof_offset_slope="log-log slope in gamma of the proof's offset, rho = gamma^b",
    text_offset_slope="log-log slope in gamma of max(gamma, gamma^2/rho^2), rho = gamma^b",
    proof_clip_ratio="clipping constant of (D.105) / residual's standard deviation at the start",
    proof_private_constant="risk with (D.105) in units of (gamma / rho)^2, private noise dominant",
)
def of_the_proof(parameters: Parameters) -> dict:
    small = parameters.small
    rhos = [gamma**parameters.privacy_power for gamma in small]
    proof = [
        explicit_constants(
            aspect_ratio=gamma, zcdp_root=rho, label_noise_std=parameters.label_noise_std
        ).schedule.offset
        for gamma, rho in zip(small, rhos, strict=True)
    ]
    text = [_text_offset(gamma, rho) for gamma, rho in zip(small, rhos, strict=True)]
    gamma, noise = parameters.private_aspect_ratio, parameters.label_noise_std
    at = gamma, gamma**parameters.privacy_power
    found = explicit_constants(aspect_ratio=at[0], zcdp_root=at[1], label_noise_std=noise)
    solved = equivalent.solve(
        parameters, spectra.isotropic(), found.schedule, *at, found.clip_constant, times=[1.0]
    )
    return {
        "proof_clip_ratio": found.clip_constant / math.sqrt(1 + noise**2),
        "proof_private_constant": solved.final_risk.item() / (at[0] / at[1]) ** 2,
        "proof_offset_slope": np.polyfit(np.log(small), np.log(proof), 1)[0],
        "text_offset_slope": np.polyfit(np.log(small), np.log(text), 1)[0],
    }


theory = stage(AXES, blocks_of=globals())


def _text_offset(gamma: float, rho: float) -> float:
    return max(gamma, (gamma / rho) ** 2)


class Explicit(NamedTuple):
    """The constants with which Theorem 2 is proved, and the bound that they give.

    The bound is on the excess risk of the private output, its noise included.
    """

    schedule: Harmonic
    clip_constant: float
    bound: float


def explicit_constants(
    *,
    aspect_ratio: float,
    zcdp_root: float,
    label_noise_std: float,
    smallest: float = 1.0,
    largest: float = 1.0,
    start: float = 0.5,
) -> Explicit:
    r"""A harmonic schedule with a proved bound, for a well-conditioned covariance.

    .. math:: \beta = \frac{3\sqrt{A + 90}}{\lambda_{\min}},\quad
        c = \sqrt2\,\beta,\quad \tau = \max(b_1, 2\sqrt{b_2}),\quad
        b_1 = \tfrac12\lambda_{\max} c^2\gamma,\ b_2 = 4c^2\gamma^2/\rho^2,

    .. math:: R(1) + \frac{2c^2\tilde\eta(1)^2\gamma^2}{\rho^2}
        \le \tau^3 R(0) + \frac{b_1\beta^2}{2} + 2 b_2\beta^2 + \frac{b_2\beta^2}{2},
        \qquad A = R(0) + \zeta^2/2

    with the extreme eigenvalues, `smallest` <= 1 <= `largest`, and R(0) = `start`. The constants
    serve the proof: the bound is orders of magnitude above the risk.

    Source
    ------
    Equations (D.105) and (D.109)-(D.111); the proof's last line has half of the output noise of
    Proposition 4.4, which is whole here.
    """
    total = start + label_noise_std**2 / 2
    numerator = 3 * math.sqrt(total + 90) / smallest
    clip_constant = math.sqrt(2) * numerator
    sampling = largest * clip_constant**2 * aspect_ratio / 2
    private = 4 * (clip_constant * aspect_ratio / zcdp_root) ** 2
    offset = max(sampling, 2 * math.sqrt(private))
    bound = offset**3 * start + numerator**2 * (sampling / 2 + 2.5 * private)
    return Explicit(Harmonic(numerator, offset), clip_constant, bound)
