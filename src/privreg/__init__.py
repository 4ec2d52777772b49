"""Private linear regression: algorithms, their theory, their privacy, and intervals.

==========================  =====================================================================
to                          start with
==========================  =====================================================================
fit a table of your own     `PrivateLinearRegression`, `Budget`
plan and predict a fit      `Problem`, `plan_run`, `least_budget`, `predicted_length`
run one method directly     `full_batch_dpgd`, `one_pass_dpgd`, `adassp`, `dp_ftrl`,
                            `shaped_dp_ftrl`, `run_noisy_sgd`
evaluate a theory           `deterministic_equivalent`, `HomogenisedSGD`, `gradient_descent_law`,
                            `release_loss`, and the package `theory`
compute intervals           `batch_means`, `checkpoints`, `independent_runs`,
                            `population_intervals`, `interval_quality`
check a privacy claim       `audit`, `audit_mechanism`, `compose`, `Release`, `Odometer`
==========================  =====================================================================

`help(privreg.Budget)` documents one name, and `dir(privreg)` lists all names; docs/names.md has
examples. Importing the package loads no submodule; each name is loaded on first use.
"""

from __future__ import annotations

from importlib import import_module as _import_module
from sys import prefix as _prefix


def _homes() -> dict[str, str]:
    """Module of each public name, from the lines `from A import B as B` of the stub file.

    The lines are split by hand, since importing a parser would take longer than all else here.
    """
    with open(__file__.removesuffix("py") + "pyi", encoding="utf-8") as stub:  # noqa: PTH123
        lines = [line.split() for line in stub]
    return {line[3]: line[1] for line in lines if len(line) == 6 and line[3] == line[5]}


# Without `__all__`, so that `help(privreg)` is a page on where to start, not every docstring.
_HOMES = _homes()


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        from difflib import get_close_matches

        hint = "".join(f"; did you mean {each!r}?" for each in get_close_matches(name, _HOMES, n=1))
        raise AttributeError(f"module 'privreg' has no attribute {name!r}{hint}")
    home = _HOMES[name]
    try:
        value = _import_module(f"{home}.{name}")
    except ModuleNotFoundError as error:
        if error.name and error.name.partition(".")[0] != "privreg":
            missing = f"{error.name} is missing in the environment {_prefix}"
            raise ModuleNotFoundError(missing, name=error.name) from None
        if error.name != f"{home}.{name}":
            raise
        value = getattr(_import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*_HOMES, *(name for name in globals() if name.startswith("__"))})
