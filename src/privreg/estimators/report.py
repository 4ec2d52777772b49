"""What a private fit says about itself: the privacy that was spent, in words, text and HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from privreg.estimators.layout import Part, as_html, as_text, require_names
from privreg.estimators.outlook import Outlook
from privreg.estimators.picture import html_budget, html_slopes, slope_bars
from privreg.estimators.summary import summary_part
from privreg.estimators.table_quality import TableQuality
from privreg.inference.population_intervals import CoefficientIntervals
from privreg.noise.source import NOT_PRIVATE
from privreg.privacy.budget import Budget
from privreg.validation import require_array, require_choice, require_instance

FloatArray = NDArray[np.float64]
DELTA = 1e-6


@dataclass(frozen=True)
class PrivacyStatement:
    """What a fit cost, and what that rests on; a seeded fit is not private at any cost.

    Attributes
    ----------
    with_secret_noise : Budget
        What the fit costs, with its neighbouring relation, if its noise is secret.
    unit : str
        "row" or "person": whose data one neighbour may change.
    spending : tuple of (str, Budget)
        What was spent on what, with secret noise; the budgets add up to the whole.
    assumptions : tuple of str
        What must hold besides the code.
    seeded : bool
        Whether the noise comes from a seed: then nothing is promised, and every ε is infinite.
    gaussian_dp : bool
        Whether a fit of budget ρ is known to be √(2ρ)-Gaussian-DP.
    """

    with_secret_noise: Budget
    unit: str
    spending: tuple[tuple[str, Budget], ...]
    assumptions: tuple[str, ...]
    seeded: bool = False
    gaussian_dp: bool = True

    @property
    def budget(self) -> Budget:
        """What the fit cost; infinite where it is seeded."""
        known = self.with_secret_noise
        return Budget(inf, known.neighbours) if self.seeded else known

    @property
    def rho(self) -> float:
        """ρ of zCDP."""
        return self.budget.rho

    @property
    def mu(self) -> float:
        """μ of Gaussian DP: √(2ρ) where the method is known to have it, infinite elsewhere."""
        return self.budget.root if self.gaussian_dp else inf

    def epsilon(self, delta: float = DELTA) -> float:
        """Least ε known at δ: exact where the method only adds Gaussian noise."""
        return self._epsilon(self.budget, delta)

    @property
    def facts(self) -> tuple[tuple[str, str], ...]:
        """ε, ρ and what they rest on, as names and words for a summary."""
        seeded = (("Noise", "seeded: not private"),) if self.seeded else ()
        return (
            ("Epsilon", f"{self.epsilon():.4g} at delta {DELTA:g}"),
            ("Rho (zCDP)", f"{self.rho:.4g}"),
            ("Neighbours", f"{self.budget.neighbours.value}, of a {self.unit}"),
            *seeded,
        )

    @property
    def sentence(self) -> str:
        """The guarantee at δ = 1e-6 in one sentence."""
        known = self.with_secret_noise
        epsilon = self._epsilon(known, DELTA)
        promise = (
            f"({epsilon:.4g}, {DELTA:g})-differentially private, for data sets that differ in one "
            f"{self.unit} ({known.neighbours.value})"
        )
        return f"{NOT_PRIVATE}; with secret noise {promise}" if self.seeded else promise

    def _epsilon(self, budget: Budget, delta: float) -> float:
        known = budget.gaussian_epsilon if self.gaussian_dp else budget.epsilon
        return known(delta=delta)


def write_report(
    format: Literal["text", "html"],
    *,
    names: Sequence[str],
    intervals: CoefficientIntervals,
    target: Sequence[str],
    privacy: PrivacyStatement,
    outlook: Outlook,
    bounds: FloatArray,
    label_bounds: FloatArray,
    quality: TableQuality | None = None,
) -> str:
    """The report of a fit."""
    require_choice("format", format, ("text", "html"))
    require_instance("intervals", intervals, CoefficientIntervals)
    require_instance("privacy", privacy, PrivacyStatement)
    require_instance("outlook", outlook, Outlook)
    if quality is not None:
        require_instance("quality", quality, TableQuality)
    require_instance("target", target, list)
    if not target or not all(isinstance(each, str) for each in target):
        raise ValueError(f"target must be texts, at least one, got {len(target)} others")
    require_names(names, size=intervals.centre.size)
    bounds = require_array("bounds", bounds, shape=(None, 2))
    label_bounds = require_array("label_bounds", label_bounds, shape=(2,))
    spending: list[tuple[str, ...]] = [
        (what, f"{budget.rho:.4g}", f"{100 * budget.rho / privacy.with_secret_noise.rho:.1f} %")
        for what, budget in privacy.spending
    ]
    guarantee = [
        f"{privacy.sentence[0].upper()}{privacy.sentence[1:]}.",
        f"zCDP with rho = {privacy.rho:.4g}; Gaussian DP with mu = {privacy.mu:.4g}.",
    ]
    settings = outlook.settings
    chosen = [
        f"{settings.name.replace('_', ' ')}: {settings}",
        f"label within [{label_bounds[0]:g}, {label_bounds[1]:g}]",
        *(
            f"{name} within [{low:g}, {high:g}]"
            for name, (low, high) in zip(names, bounds, strict=False)
        ),
    ]
    parts: list[Part] = [
        summary_part(names, intervals, list(target)),
        ("Predicted before the fit", None, [], outlook.sentences),
        *([] if quality is None else [_quality(quality)]),
        ("Privacy", None, [], guarantee),
        ("Spent on", ("", "rho", "share"), spending, []),
        ("Assumed", None, [], list(privacy.assumptions)),
        ("Chosen without the data", None, [], chosen),
    ]
    if format == "text":
        return as_text(parts)
    pictures = {
        "Coefficients": html_slopes(slope_bars(names, intervals, bounds)),
        "Spent on": html_budget(privacy.spending),
    }
    return as_html(parts, pictures)


def _quality(quality: TableQuality) -> Part:
    sentences = []
    if quality.incomplete or not quality.clipped:
        sentences.append(
            "A record with a missing, unreadable or undeclared value in a used column is "
            "incomplete and counts as absent."
        )
    kinds = {"incomplete": quality.incomplete, "clipped": quality.clipped}
    bought = {kind: shares for kind, shares in kinds.items() if shares}
    if not bought:
        return "Records", None, [], sentences
    sentences += [
        "A clipped number lies outside its bounds and counts as the nearer of them.",
        "Shares are of all records, with the standard deviation of their noise.",
    ]
    rows = [
        (name, *(_share(each.get(name), quality.noise_std) for each in bought.values()))
        for name in quality.incomplete or quality.clipped
    ]
    return "Records", ("", *bought), rows, sentences


def _share(share: float | None, noise_std: float) -> str:
    """A noisy share as what it is, from 0 to 100 %."""
    if share is None:
        return ""
    if noise_std > 0.5:
        return "hidden by the noise"
    return f"{100 * min(max(share, 0.0), 1.0):.2f} ± {100 * noise_std:.2g} %"
