"""Predicted and simulated errors for many sizes, dimensions, laws, methods, spectra and budgets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from reproduction.engine import quantities as q
from reproduction.engine.parameters import Strict
from reproduction.engine.recipe import Axis, Dataset, Estimate, Trial, kept, per, stage
from reproduction.engine.summaries import trials_last

if TYPE_CHECKING:
    from reproduction.studies.predicted_settings import Setting

FloatArray = NDArray[np.float64]
PLACE = "The accuracy of predictions"


class Size(Strict):
    """A number of rows, and the numbers of features that are combined with it."""

    sample_size: q.SampleSize = Field(description="Number of rows.")
    dimensions: q.Rising[q.Dimension] = Field(description="Numbers of features.")


class Parameters(Strict):
    """Every sample size is combined with each of its dimensions and each law of the features."""

    sizes: q.Some[Size] = Field(description="Numbers of rows and of features.")
    coefficients: q.Count = Field(
        description="Coefficients a trial estimates in a setting: a fifth of it from 50,000 rows "
        "on, a thirteenth from 500,000."
    )


def settings(parameters: Parameters) -> list[Setting]:
    from reproduction.studies.predicted_settings import every_setting

    return every_setting([(size.sample_size, size.dimensions) for size in parameters.sizes])


def chosen(settings: list[Setting]) -> list[tuple[str, Any, Any]]:
    """For each setting, name, settings and prediction of the method."""
    return [setting.chosen() for setting in settings]


def labels(settings: list[Setting], chosen: list[tuple[str, Any, Any]]) -> list[str]:
    return [
        f"{each.problem.feature_law}, n = {each.problem.sample_size}, "
        f"p = {each.problem.dimension}, {each.problem.label_noise_law} noise, {name}"
        for each, (name, _, _) in zip(settings, chosen, strict=True)
    ]


@per(
    "setting",
    settings="settings of the method",
    predicted_risk="predicted excess risk",
    predicted_risk_spread="predicted standard deviation of the excess risk over runs",
    holds="1 where the theory holds without a warning",
)
def predicted(chosen: list[tuple[str, Any, Any]]) -> list[dict[str, Any]]:
    """The method of each setting with its settings of least predicted error, and this error."""
    from reproduction.studies.written_methods import to_text

    return [
        {
            "settings": to_text(method),
            "predicted_risk": found.excess_risk,
            "predicted_risk_spread": found.excess_risk_std,
            "holds": int(found.holds and not found.warnings),
        }
        for _, method, found in chosen
    ]


@per(
    "setting",
    excess_risk="excess risk, mean of a trial",
    squared_excess_risk="squared excess risk, mean of a trial",
    control="control variate of mean zero, mean of a trial",
    squared_control="squared control variate, mean of a trial",
    control_product="excess risk times control variate, mean of a trial",
)
def run(
    parameters: Parameters, settings: list[Setting], theory: Dataset, trial: Trial
) -> list[dict[str, float]]:
    """Means over the runs of a trial, for each setting."""
    from reproduction.studies.written_methods import from_text

    found = []
    for setting, text in zip(settings, theory.settings.values, strict=True):
        method = from_text(str(text))
        risk, control = setting.runs(method, parameters.coefficients, trial.rng)
        values = {
            "excess_risk": risk,
            "squared_excess_risk": risk**2,
            "control": control,
            "squared_control": control**2,
            "control_product": risk * control,
        }
        found.append({name: float(np.mean(each)) for name, each in values.items()})
    return found


@per(
    "setting",
    simulated_risk="simulated mean excess risk, less a control variate of mean zero",
    ratio=Estimate("predicted divided by simulated mean excess risk"),
    raw_error="standard error of the ratio without the control variate",
    spread_ratio="predicted divided by simulated standard deviation of runs",
)
def ratios(simulation: Dataset, theory: Dataset) -> dict[str, Any]:
    """Ratios of predicted to simulated errors."""
    names = ("excess_risk", "control", "squared_control", "control_product")
    risk, *others = (trials_last(simulation[name]) for name in names)
    values = controlled(risk, *others)
    mean, root = values.mean(axis=-1), np.sqrt(risk.shape[-1])
    square = trials_last(simulation.squared_excess_risk).mean(axis=-1)
    ratio = theory.predicted_risk.values / mean
    deviation = np.sqrt(np.maximum(square - risk.mean(axis=-1) ** 2, 0.0))
    return {
        "simulated_risk": mean,
        "ratio": (ratio, ratio * values.std(axis=-1, ddof=1) / root / mean),
        "raw_error": ratio * risk.std(axis=-1, ddof=1) / root / mean,
        "spread_ratio": theory.predicted_risk_spread.values / np.maximum(deviation, 1e-300),
    }


@per(within_a_tenth="share of settings where the theory holds with a ratio from 0.9 to 1.1")
def within_a_tenth(earlier: Dataset, theory: Dataset) -> float:
    near = np.abs(earlier.ratio.values - 1) <= 0.1
    return float(np.mean(near & (theory.holds.values == 1)))


AXES = {"setting": Axis("law, sizes and method", lambda theory: theory.setting.values)}
theory = stage(
    {"setting": Axis("law, sizes and method", labels)},
    predicted,
    shared={"settings": settings, "chosen": chosen},
)
simulate = stage(AXES, run, shared={"settings": settings})
summarise = stage(
    AXES, ratios, within_a_tenth, kept(predicted, names=["predicted_risk"], artifact="theory")
)


def controlled(
    value: FloatArray, control: FloatArray, square: FloatArray, product: FloatArray
) -> FloatArray:
    r"""Each trial's mean, less its control times a coefficient from the other trials.

    .. math:: y_t - \beta_{-t} c_t,\qquad
        \beta_{-t} = \frac{\operatorname{Cov}_{-t}(y, c)}{\operatorname{Var}_{-t}(c)}

    Arguments are means over each trial's runs of y, c, c² and yc, shape (..., trials), of at least
    two trials. The coefficient is independent of the trial and the control has mean 0: no bias.
    """
    value_of_others, control_of_others, square_of_others, product_of_others = (
        (each.sum(axis=-1, keepdims=True) - each) / (each.shape[-1] - 1)
        for each in (value, control, square, product)
    )
    covariance = product_of_others - value_of_others * control_of_others
    variance = square_of_others - control_of_others**2
    # If controls of single runs are equal, they determine no slope.
    known = variance > 1e-12 * square_of_others
    slope = np.where(known, covariance, 0.0) / np.where(known, variance, 1.0)
    return np.asarray(value - slope * control)
