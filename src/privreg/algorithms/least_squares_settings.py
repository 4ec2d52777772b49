"""What private least squares needs to be told: its warm-up, and who gets what."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privreg.algorithms.huber_settings import HuberSettings, default_settings, round_shares
from privreg.privacy.budget import Budget
from privreg.validation import require_count, require_instance, require_number

FloatArray = NDArray[np.float64]
# Of the wide steps' budget, by steps: the last one decides, the others leave little of the start.
WIDE_SHARES = (0.1, 0.2, 0.7)
# Of what a robust fit spends on the start; of the rest: tail, curvature of short and of long rows,
# second moment, means.
START = {"gram_share": 0.7, "scale_share": 0.5, "warm_up_share": 0.48}
REST = {
    "tail_share": 0.08,
    "curvature_share": 0.03,
    "long_share": 0.02,
    "moment_share": 0.05,
    "mean_share": 0.01,
}
WIDE = 0.662


@dataclass(frozen=True)
class LeastSquaresSettings:
    r"""Steps and budget shares of `least_squares_descent`, chosen without looking at the data.

    .. math::
        \rho = \rho_{\text{norms}} + \rho_{\text{Gram}} + \rho_{\text{scales}}
        + \rho_{\text{warm-up}} + \rho_{\text{tail}} + \rho_{\text{curvature}}
        + \rho_{\text{long}} + \rho_{\text{moment}} + \rho_{\text{means}} + \rho_{\text{wide}}

    The start is as in `HuberSettings`; the clip of the wide steps is found privately. `tail_share`
    is for the histogram of products from which the clip and the allowance for bias come,
    `curvature_share` and `long_share` for the second moment of the rows that are not clipped: all
    shortened to where its noise is small, and long ones at more length. `moment_share` and
    `mean_share` are for the second moment of clipped gradients, and for the two traces.
    `final_share`, what is left, goes to three wide steps, 10, 20 and 70 % of it.
    """

    clip_width: float = 1.0
    warm_up_steps: int = 4
    gram_rounds: int = 3
    norm_share: float = 0.01
    gram_share: float = 0.07
    scale_share: float = 0.02
    warm_up_share: float = 0.048
    tail_share: float = 0.08
    curvature_share: float = 0.03
    long_share: float = 0.02
    moment_share: float = 0.05
    mean_share: float = 0.01

    def __post_init__(self) -> None:
        require_number("clip_width", self.clip_width, least=1e-3, most=1e3)
        for name in ("warm_up_steps", "gram_rounds"):
            require_count(name, getattr(self, name))
        for name in _SHARES:
            require_number(name, getattr(self, name), above=0, below=1)
        if not self.final_share > 0:
            raise ValueError(
                "norm_share and the other shares must leave something for the wide steps, got "
                f"{1 - self.final_share:g} of the budget before them"
            )

    @property
    def steps(self) -> int:
        return self.warm_up_steps + len(WIDE_SHARES)

    @property
    def gram_shares(self) -> list[float]:
        """`gram_share` by rounds, the later the more."""
        return round_shares(self.gram_share, self.gram_rounds)

    @property
    def final_share(self) -> float:
        return 1.0 - sum(getattr(self, name) for name in _SHARES)

    @property
    def wide_shares(self) -> tuple[float, ...]:
        return tuple(part * self.final_share for part in WIDE_SHARES)

    @property
    def wide_sizes(self) -> tuple[float, ...]:
        """a_k = f_k/(f_1 + ... + f_k): the noise of one step that had the whole share."""
        sizes = np.array(WIDE_SHARES) / np.cumsum(WIDE_SHARES)
        return tuple(float(size) for size in sizes)


_SHARES = ("norm_share", *START, *REST)


def with_start_of(settings: HuberSettings) -> LeastSquaresSettings:
    """Settings whose start follows that of a robust fit, with the rest in proportion."""
    require_instance("settings", settings, HuberSettings)
    start = {name: part * getattr(settings, name) for name, part in START.items()}
    left = 1.0 - settings.norm_share - sum(start.values())
    whole = sum(REST.values()) + WIDE
    return LeastSquaresSettings(
        clip_width=settings.clip_width,
        warm_up_steps=settings.warm_up_steps,
        gram_rounds=settings.gram_rounds,
        norm_share=settings.norm_share,
        **{name: round(share, 12) for name, share in start.items()},
        **{name: round(part / whole * left, 12) for name, part in REST.items()},
    )


def default_least_squares_settings(
    *, sample_size: int, dimension: int, budget: Budget
) -> LeastSquaresSettings:
    """Settings from what is public, with the start of `default_settings`."""
    return with_start_of(
        default_settings(sample_size=sample_size, dimension=dimension, budget=budget)
    )
