"""What a private Huber regression needs to be told: its steps, its clip, and who gets what."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from privreg.algorithms.split_budget import require_budget
from privreg.privacy.budget import Budget
from privreg.privacy.neighbours import sum_sensitivity
from privreg.validation import require_count, require_flag, require_number

FloatArray = NDArray[np.float64]
# Inverse of the noise in a second moment, relative to its mean, from which a sandwich is worth it.
MOMENT_PRICE = 8.0
# Best width under exponential errors at any price: a clip that ends at the steep side of their
# density.
SKEWED_WIDTH = 1.09
# Variance under Gaussian noise that a wider clip may cost.
WIDENING = 1.01


@dataclass(frozen=True)
class HuberSettings:
    r"""Steps, clip and budget shares of `huber_descent`, all chosen without looking at the data.

    .. math::
        \rho = \rho_{\text{norms}} + \rho_{\text{Gram}} + \rho_{\text{scales}}
        + \rho_{\text{warm-up}} + \rho_{\text{means}} + \rho_{\text{moments}} + \rho_{\text{final}}

    Parameters
    ----------
    clip_width : float
        Width w of the clip in units of the residual scale, in [1e-3, 1e3]: a record of typical
        length is clipped beyond w robust standard deviations. About 1 where privacy decides; wider
        where the sample does.
    warm_up_steps : int
        Steps at full length that only have to come near; each takes the residual scale anew.
    final_steps : int
        Steps K that are averaged: step k has length 1/k.
    gram_rounds : int
        Rounds of the private Gram matrix; each whitens for the next, which lowers the noise in thin
        directions.
    norm_share, gram_share, scale_share, warm_up_share, mean_share : float
        Shares of ρ for the rows' typical length, the Gram matrix, the residual scales, the warm-up
        steps, and the two means that intervals need; each in (0, 1).
    moment_share : float
        Share for the two second moments of the clipped gradient, with which intervals hold under
        errors whose size depends on the features; in [0, 1). Without it intervals take errors to
        be independent of the features.
    common_width : bool
        How a gradient is bounded. False: the residual of a row of length ‖z‖ is clipped to γ/‖z‖.
        True: every residual is clipped to γ/√p, and rows longer than √p are shortened to it, so
        that slopes keep their target under skewed errors that do not depend on the features.
        Without effect on records of several rows.

    `final_share`, what is left, goes to the final steps.
    """

    clip_width: float = 1.0
    warm_up_steps: int = 4
    final_steps: int = 3
    gram_rounds: int = 3
    norm_share: float = 0.01
    gram_share: float = 0.10
    scale_share: float = 0.04
    warm_up_share: float = 0.10
    mean_share: float = 0.02
    moment_share: float = 0.10
    common_width: bool = True

    def __post_init__(self) -> None:
        require_number("clip_width", self.clip_width, least=1e-3, most=1e3)
        for name in ("warm_up_steps", "final_steps", "gram_rounds"):
            require_count(name, getattr(self, name))
        for name in ("norm_share", "gram_share", "scale_share", "warm_up_share", "mean_share"):
            require_number(name, getattr(self, name), above=0, below=1)
        require_number("moment_share", self.moment_share, least=0, below=1)
        require_flag("common_width", self.common_width)
        if not self.final_share > 0:
            raise ValueError(
                "norm_share and the other shares must leave something for the final steps, got "
                f"{1 - self.final_share:g} of the budget before them"
            )

    @property
    def steps(self) -> int:
        return self.warm_up_steps + self.final_steps

    @property
    def gram_shares(self) -> list[float]:
        """`gram_share` by rounds: later ones decide, the first only prepare."""
        return round_shares(self.gram_share, self.gram_rounds)

    @property
    def final_share(self) -> float:
        return 1.0 - (
            self.norm_share
            + self.gram_share
            + self.scale_share
            + self.warm_up_share
            + self.mean_share
            + self.moment_share
        )


def round_shares(share: float, rounds: int) -> list[float]:
    """A share by rounds, in proportion to 1, 2, 3, ..."""
    shares = share * np.arange(1, rounds + 1) * 2 / (rounds * (rounds + 1))
    return [float(each) for each in shares]


def default_settings(*, sample_size: int, dimension: int, budget: Budget) -> HuberSettings:
    r"""Settings from what is public: the number of records and features, and the budget.

    The clip minimises the variance of a coefficient under Gaussian noise, sampling and privacy
    together, in units of the sampling variance of least squares:

    .. math::
        w = \arg\min_w \frac{\mathbb E\min(\xi^2, w^2) + K w^2}{\Pr(|\xi| \le w)^2},
        \qquad K = \frac{\Delta^2 p}{2 n\rho_{\text{final}}},\ \xi \sim N(0, 1)

    with Δ = 2 under replace-one and 1 under the other relations. Where it is narrower than what
    skewed errors would have, 1.09 scales, it is widened up to that as long as it costs at most 1 %
    of the variance under Gaussian noise; exponential errors gain ten times that. Where the noise of
    the second moments would hide what they are for, their share goes to the Gram matrix.
    """
    n = require_count("sample_size", sample_size)
    p = require_count("dimension", dimension)
    require_budget(budget)
    settings = HuberSettings()
    root = np.sqrt(settings.moment_share / 2 * budget.rho)
    if n * root < MOMENT_PRICE * (1.2 * p + 3):
        settings = replace(settings, gram_share=0.16, moment_share=0.0)
    change = float(sum_sensitivity(1.0, neighbours=budget.neighbours))
    price = change**2 * p / (2 * n * budget.rho * settings.final_share)
    return replace(settings, clip_width=best_clip_width(price))


def best_clip_width(privacy_price: float) -> float:
    """Minimiser of `default_settings`' criterion at price K in [0.25, 2.5], widened as it says."""
    from scipy.special import ndtr

    price = require_number("privacy_price", privacy_price, least=0, most=1e100)
    width = np.geomspace(0.25, 2.5, 200)
    inside = 2 * ndtr(width) - 1
    density = np.exp(-(width**2) / 2) / np.sqrt(2 * np.pi)
    clipped_square = inside - 2 * width * density + width**2 * (1 - inside)
    variance = (clipped_square + price * width**2) / inside**2
    best = int(np.argmin(variance))
    widest = float(width[np.flatnonzero(variance <= WIDENING * variance[best])[-1]])
    return max(float(width[best]), min(widest, SKEWED_WIDTH))
