"""Deliberate mistakes that this paper's ledger must notice, each with the entries that do."""

from __future__ import annotations

from typing import Any

from reproduction.engine.falsify import Patch, WrongVersion, listed, scaled

EXPERIMENTS = "reproduction.papers.lin2025.experiments"


def _reversed(right: Any) -> Any:
    return lambda shift, first, second, **options: right(shift, second, first, **options)


def _louder(right: Any) -> Any:
    def wrong(*problem: Any, gradient_noise_std: float, horizon: float) -> Any:
        return right(*problem, gradient_noise_std=2**0.5 * gradient_noise_std, horizon=horizon)

    return wrong


WRONG_VERSIONS = (
    WrongVersion(
        name="reversed-divergence",
        says="The divergence of two Gaussian laws is taken in the other direction.",
        runs={"divergence_checks": ("theory",)},
        patches=(Patch(f"{EXPERIMENTS}.divergence_checks:renyi_divergence", _reversed),),
        turns=listed("""
            later-releases-add-nothing gaussian-divergence-quadrature gaussian-divergence-cubature
            lemma-c2-corrected low-rank-equals-dense prefix-counts average-corrected
            exact-loss-by-two-routes
        """),
    ),
    WrongVersion(
        name="stationary-risk-without-the-half",
        says="The closed form of the stationary risk is twice what it should be.",
        runs={"volterra_routes": ("theory",)},
        patches=(Patch(f"{EXPERIMENTS}.volterra_routes:stationary_risk", scaled(2.0)),),
        turns=("stationary-risk",),
    ),
    WrongVersion(
        name="volterra-with-the-whole-private-noise",
        says="G' has sigma^2 / d in place of sigma^2 / (2 d).",
        runs={"volterra_routes": ("theory",)},
        patches=(Patch(f"{EXPERIMENTS}.volterra_routes:solve_volterra", _louder),),
        turns=("volterra-two-routes", "volterra-regularised-risk", "volterra-closed-form"),
    ),
    WrongVersion(
        name="half-the-propagated-noise",
        says="The covariance (10) has half of the propagated noise.",
        runs={"volterra_routes": ("theory",)},
        patches=(Patch(f"{EXPERIMENTS}.volterra_routes:_variance", scaled(0.5)),),
        turns=("variance-is-propagated-noise",),
    ),
)
