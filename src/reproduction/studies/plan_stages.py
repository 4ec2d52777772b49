"""Plans, the grids' best settings, and both of them judged on fresh rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from reproduction.experiment.datasets import Release, variable

if TYPE_CHECKING:
    import xarray as xr

    from reproduction.experiment.trials import Trials
    from reproduction.studies.regret import Case

# The grid's best comes first; the default is what an estimator takes that is told nothing.
JUDGED = ("best of the grid", "plan", "default")
NEAR = 1.1
GRID_SEED = 7000


def planned(cases: Sequence[Case], *, release: Release | None = None) -> xr.Dataset:
    """Settings of each case's plan and of its grid's best, as text, and what the plan predicts."""
    import xarray as xr

    from privreg.methods.private_regression import PrivateRegression
    from privreg.planning.plan import plan_run
    from reproduction.studies.regret import best_of_grid
    from reproduction.studies.written_methods import to_text

    settings, risk, held = [], [], []
    for number, case in enumerate(cases):
        rng = np.random.Generator(np.random.SFC64([GRID_SEED, number]))
        plan = plan_run(case.stated, case.budget, intervals=False)
        default = PrivateRegression.default(
            sample_size=case.truth.sample_size, dimension=case.truth.dimension, budget=case.budget
        )
        chosen = plan.best.method if plan.worthwhile else None
        settings.append([to_text(each) for each in (best_of_grid(case, rng), chosen, default)])
        found = [each.excess_risk for each in plan.best.predictions]
        risk.append([min(found), max(found)])
        held.append(int(plan.best.holds))
    return xr.Dataset(
        {
            "settings": variable(("problem", "judged"), settings, "settings", release=release),
            "predicted_risk": variable(
                ("problem", "end"),
                risk,
                "least and largest excess risk that the plan predicts over what is stated",
                release=release,
            ),
            "holds": variable("problem", held, "1 where the plan's theory holds", release=release),
            "null_risk": variable(
                "problem",
                [case.truth.null_risk for case in cases],
                "excess risk of predicting the mean",
                release=release,
            ),
        },
        coords={
            "problem": variable("problem", [case.name for case in cases], "problem"),
            "judged": variable("judged", list(JUDGED), "whose settings"),
        },
    )


def judged(
    cases: Sequence[Case], trials: Trials, theory: xr.Dataset, *, release: Release | None = None
) -> xr.Dataset:
    """Excess risk of each of the judged settings, on the same rows of each trial."""
    import xarray as xr

    from reproduction.studies.regret import risks
    from reproduction.studies.written_methods import from_text

    methods = [[from_text(str(text)) for text in row] for row in theory.settings.values]
    risk = np.zeros((len(cases), len(JUDGED), len(trials)))
    for at, trial in enumerate(trials):
        for number, case in enumerate(cases):
            risk[number, :, at] = risks(case, methods[number], trial.rng)
    return xr.Dataset(
        {
            "excess_risk": variable(
                ("problem", "judged", "trial"), risk, "excess risk of a run", release=release
            )
        },
        coords={name: theory[name].variable for name in ("problem", "judged")},
    )


def regrets(
    simulation: xr.Dataset, theory: xr.Dataset, *, release: Release | None = None
) -> xr.Dataset:
    """Ratios of mean errors to the grid's best, with standard errors from the pairs."""
    import xarray as xr

    risk = simulation.excess_risk.transpose("problem", "judged", "trial").values
    best = risk[:, 0].mean(axis=1)
    names = {"regret": "plan", "default_regret": "default"}
    variables: dict[str, Any] = {}
    for name, whose in names.items():
        own = risk[:, JUDGED.index(whose)]
        ratio = own.mean(axis=1) / best
        spread = (own - ratio[:, None] * risk[:, 0]).std(axis=1, ddof=1) / best
        error = spread / np.sqrt(risk.shape[2])
        meaning = f"mean excess risk of the {whose}'s settings over that of the grid's best"
        worst = int(np.argmax(ratio))
        variables |= {
            name: variable(
                "problem",
                ratio,
                meaning,
                standard_error=f"{name}_standard_error",
                release=release,
            ),
            f"{name}_standard_error": variable(
                "problem", error, f"standard error of the {meaning}", release=release
            ),
            f"median_{name}": variable(
                (), float(np.median(ratio)), f"median {meaning}", release=release
            ),
            f"worst_{name}": variable(
                (),
                float(ratio[worst]),
                f"largest {meaning}",
                standard_error=f"worst_{name}_standard_error",
                release=release,
            ),
            f"worst_{name}_standard_error": variable(
                (), float(error[worst]), f"standard error of the largest {meaning}", release=release
            ),
            f"near_best_{name}": variable(
                (),
                int(np.sum(ratio <= NEAR)),
                f"problems whose {meaning} is at most {NEAR}",
                release=release,
            ),
        }
    mean = risk[:, JUDGED.index("plan")].mean(axis=1)
    variables |= {
        "simulated_risk": variable(
            "problem", mean, "mean excess risk of the plan's settings", release=release
        ),
        **{name: theory[name].variable for name in ("predicted_risk", "holds", "null_risk")},
    }
    return xr.Dataset(
        variables,
        coords={"problem": theory.problem.variable, "trial": simulation.trial.variable},
    )
