"""The deterministic equivalent for an experiment; a separate module, as no run needs it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from privreg.schedules import Schedule
from privreg.spectra import Spectrum
from reproduction.papers.bombari2025.setting import Labelled, OneRate

if TYPE_CHECKING:
    from privreg.theory.one_pass_dpgd.deterministic_equivalent import Solution
    from privreg.theory.one_pass_dpgd.rate_search import Best


def solve(
    parameters: Labelled, spectrum: Spectrum, schedule: Schedule, *at: Any, **options: Any
) -> Solution:
    """Solve the deterministic equivalent in the setting of the arguments of `problem`."""
    from privreg.theory.one_pass_dpgd import deterministic_equivalent

    return deterministic_equivalent.solve(spectrum, schedule, **parameters.problem(*at), **options)


def tuned(
    parameters: Labelled, spectrum: Spectrum, shape: float | str, *at: Any, **options: Any
) -> Best:
    """The least final risk over the rates of a shape from `setting.shapes`."""
    from privreg.theory.one_pass_dpgd import rate_search

    problem = parameters.problem(*at) | options
    if isinstance(shape, str):
        return rate_search.harmonic(spectrum, **problem)
    return rate_search.polynomial(spectrum, exponent=shape, **problem)


def path(
    parameters: OneRate, spectrum: Spectrum, exponent: float, times: Any, **options: Any
) -> Solution:
    """The deterministic equivalent along a run."""
    at = parameters.aspect_ratio, parameters.budget.root
    return solve(parameters, spectrum, parameters.schedule(exponent), *at, times=times, **options)
