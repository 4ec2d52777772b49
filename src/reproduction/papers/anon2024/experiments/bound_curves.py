"""The minimised bounds at sample sizes from 1e3 to 1e6, where logarithms are not small."""

from __future__ import annotations

from pydantic import Field

from reproduction.engine import quantities as q
from reproduction.engine.parameters import Strict
from reproduction.engine.recipe import Axis, Quantity, per, stage
from reproduction.papers.anon2024 import setting
from reproduction.papers.anon2024.least_bounds import least_bound

PLACE = "Corollaries 4.3 and 4.5, Theorem 4.1"


class Parameters(Strict):
    """Bounds with unit noise, and with the paper's own noise at delta = N^-2."""

    decays: setting.Decays = Field(description="Decay exponents r.")
    sample_sizes: q.SizeAxis = Field(description="Sample sizes N.")
    epsilon: q.Epsilon = Field(description="epsilon of the paper's noise.")

    _noise_has_steps = q.at_least("sample_sizes.low", 2)
    _sizes_are_counted = q.at_most("sample_sizes.high", 1e15)

    def multiplier(self, noise: str, size: float) -> float:
        from privreg.algorithms.shaped_accounting import published_noise_multiplier

        if noise == "unit":
            return 1.0
        return published_noise_multiplier(epsilon=self.epsilon, delta=size**-2, steps=round(size))


AXES = setting.AXES | {
    "noise": Axis("noise multiplier", ("unit", "published")),
    "sample_size": Axis("number of rows N", "sample_sizes"),
}


@per(
    "noise",
    "algorithm",
    "decay",
    bound=Quantity("least bound over step sizes, constants left out", "sample_size"),
    step_size=Quantity("step size of the least bound", "sample_size"),
    exponent="fitted exponent over these sizes",
)
def least(parameters: Parameters, noise: str, algorithm: str, decay: float) -> dict:
    from privreg.theory.shaped_noise.bounds import fitted_exponent
    from privreg.theory.shaped_noise.decay import PowerLawDecay

    sizes, law = parameters.sample_sizes.values(), PowerLawDecay(decay)
    found = [
        least_bound(algorithm, law, size, parameters.multiplier(noise, size))
        for size in map(float, sizes)
    ]
    values = [best.value for best in found]
    return {
        "bound": values,
        "step_size": [best.step_size for best in found],
        "exponent": fitted_exponent(sizes, values),
    }


theory = stage(AXES, least)
