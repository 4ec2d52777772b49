"""The minimised bounds at sample sizes from 1e3 to 1e6, where logarithms are not small."""

from __future__ import annotations

from pydantic import Field

from privreg.theory.shaped_noise import fitted_exponent
from reproduction.engine import quantities as q
from reproduction.engine.parameters import Strict
from reproduction.engine.recipe import Axis, Quantity, per, stage
from reproduction.papers.anon2024 import setting

PLACE = "Corollaries 4.3 and 4.5, Theorem 4.1"


class Parameters(Strict):
    """Bounds with unit noise, and with the paper's own noise at delta = N^-2."""

    decays: q.Some[setting.Decay] = Field(description="Decay exponents r.")
    sample_sizes: q.SizeAxis = Field(description="Sample sizes N.")
    epsilon: q.Epsilon = Field(description="epsilon of the paper's noise.")


AXES = setting.AXES | {
    "noise": Axis("noise multiplier", ("unit", "published")),
    "sample_size": Axis("number of rows N", "sample_sizes"),
}


@per(
    "noise",
    "algorithm",
    "decay",
    bound=Quantity("least bound over step sizes, constants left out", "sample_size"),
    exponent="fitted exponent over these sizes",
)
def least(parameters: Parameters, noise: str, algorithm: str, decay: float) -> dict:
    from privreg.theory.shaped_noise import PowerLawDecay
    from reproduction.papers.anon2024.published import published_noise_multiplier

    law, sizes, epsilon = PowerLawDecay(decay), parameters.sample_sizes.values(), parameters.epsilon
    bounds = []
    for size in map(float, sizes):
        published = published_noise_multiplier(epsilon=epsilon, delta=size**-2, steps=round(size))
        multiplier = published if noise == "published" else 1.0
        bounds.append(setting.least_bound(algorithm, law, size, multiplier).value)
    return {"bound": bounds, "exponent": fitted_exponent(sizes, bounds)}


theory = stage(AXES, least)
