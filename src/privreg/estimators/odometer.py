"""Privacy of a fit, and the odometer: the total privacy cost of several fits of one table."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import Enum
from importlib import import_module
from math import fsum, inf, isclose, isfinite
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from privreg.checks import OneProcess, require_choice, require_instance, require_scale, short
from privreg.privacy.budget import Budget
from privreg.privacy.release import NOT_PRIVATE, Release

# Relative rounding error by which a sum of shares may exceed the whole.
ROUNDING = 1e-12
DELTA = 1e-6
# Errors raised when a file that holds no fit is read.
UNREADABLE = (KeyError, TypeError, AttributeError, ValueError, OverflowError, RecursionError)


@dataclass(frozen=True)
class PrivacyStatement:
    """Privacy cost of a fit and assumptions of its guarantee; a seeded fit is not private.

    Attributes
    ----------
    with_secret_noise : Budget
        Cost of the fit if its noise is secret, with the neighbouring relation.
    unit : {"row", "person"}
        What neighbouring data sets differ in: one row, or all rows of one person.
    spending : tuple of (str, Budget)
        Name and cost of each part; the costs add up to the whole.
    assumptions : tuple of str
        Conditions of the guarantee, one sentence each.
    seeded : bool
        True if the noise comes from a seed; every ε is then infinite.
    gaussian_dp : bool
        True if the fit, of budget ρ, is known to be √(2ρ)-Gaussian DP.
    delta : float
        δ at which ε is stated.
    """

    with_secret_noise: Budget
    unit: str
    spending: tuple[tuple[str, Budget], ...]
    assumptions: tuple[str, ...]
    seeded: bool = False
    gaussian_dp: bool = True
    delta: float = DELTA

    @property
    def budget(self) -> Budget:
        """Cost of the fit; infinite for a seeded fit."""
        known = self.with_secret_noise
        return Budget(inf, known.neighbours) if self.seeded else known

    @property
    def rho(self) -> float:
        """Budget ρ of zCDP; infinite for a seeded fit."""
        return self.budget.rho

    @property
    def mu(self) -> float:
        """μ of Gaussian DP: √(2ρ) if the fit is known to be Gaussian DP, else infinite."""
        return self.budget.root if self.gaussian_dp else inf

    def epsilon(self, delta: float | None = None) -> float:
        """Smallest ε known at δ (by default the statement's δ); exact for Gaussian noise."""
        budget = self.budget
        known = budget.gaussian_epsilon if self.gaussian_dp else budget.epsilon
        return known(delta=self.delta if delta is None else delta)

    @property
    def sentence(self) -> str:
        """The guarantee in one sentence."""
        epsilon = replace(self, seeded=False).epsilon()
        pair = f"data sets that differ in one {self.unit} ({self.budget.neighbours.value})"
        promise = f"({epsilon:.4g}, {self.delta:g})-differentially private, for {pair}"
        return f"{NOT_PRIVATE}; with secret noise it would be {promise}" if self.seeded else promise


class Odometer(OneProcess):
    r"""Total privacy cost of the fits of one table; fits beyond a limit are refused.

    .. math:: \rho = \sum_i \rho_i, \qquad \mu^2 = \sum_i \mu_i^2

    Fit i is ρ_i-zCDP and μ_i-Gaussian DP. An estimator with this `odometer` counts its own and its
    clones' fits before noise is drawn. A copy is the same object; an unpickled one refuses any fit.

    Parameters
    ----------
    limit : Budget, optional
        Total budget of all fits, set before the first fit; it also fixes the neighbouring relation.

    Guarantee
    ---------
    All fits of one table within a limit are together as private as the limit: ρ-zCDP, and (ε, δ)-DP
    if the limit was stated as (ε, δ). The choice of a fit may depend on earlier results. Without a
    limit, the total holds if the number and budgets of the fits were fixed beforehand. Seeded fits
    are refused, since they have no finite cost.

    Source
    ------
    Budgets chosen from earlier results, within a limit: Whitehouse, Ramdas, Rogers and Wu (2023)
    for zCDP, Smith and Thakurta (2022) for Gaussian DP. Fixed budgets: Bun and Steinke (2016),
    Lemma 2.3; Dong, Roth and Su (2022), Corollary 3.3.

    Examples
    --------
    >>> from privreg import Budget, Odometer, Release
    >>> odometer = Odometer(limit=Budget.zcdp(0.5))
    >>> odometer.add(Release(0.31, Budget.zcdp(0.25)))
    >>> odometer.add(Release(0.05, Budget.zcdp(0.125)))
    >>> odometer.total.rho, odometer.left
    (0.375, Budget(rho=0.125, neighbours='replace-one'))
    >>> odometer.add(Release(0.07, Budget.zcdp(0.25)))
    Traceback (most recent call last):
    ValueError: odometer must have rho = 0.25 left of its limit, got 0.125 after 2 fits
    """

    def __init__(self, limit: Budget | None = None) -> None:
        if limit is not None:
            require_instance("limit", limit, Budget)
            require_scale("limit: rho", limit.rho)
        self.limit = limit
        self._costs: list[PrivacyStatement] = []
        self._lock = Lock()

    @property
    def total(self) -> PrivacyStatement:
        """Cost of all fits together; an error before the first fit."""
        if not (costs := tuple(self._costs)):
            raise ValueError("odometer must have counted a fit, got none")
        known = costs[0].with_secret_noise.neighbours
        return PrivacyStatement(
            with_secret_noise=Budget(_sum(costs), known),
            unit=costs[0].unit,
            spending=tuple(part for each in costs for part in each.spending),
            assumptions=tuple(dict.fromkeys(text for each in costs for text in each.assumptions)),
            gaussian_dp=all(each.gaussian_dp for each in costs),
            delta=costs[0].delta,
        )

    @property
    def left(self) -> Budget | None:
        """Rest of the limit; None if nothing is left, or if no limit was set."""
        if self.limit is None:
            return None
        rho = self._most(self._costs) - _sum(self._costs)
        return Budget(rho, self.limit.neighbours) if rho > ROUNDING * self.limit.rho else None

    def add(self, fit: Any) -> None:
        """Count a fit: an estimator, PrivacyStatement, Release or file of `privreg fit --output`.

        Raises
        ------
        ValueError
            If the fit is seeded, costs more than is left, or differs from earlier fits in relation
            or unit. Under a limit stated as (ε, δ), all fits or none must be Gaussian DP.
        """
        cost: Any = getattr(fit, "privacy_", fit)
        if isinstance(fit, (str, Path)):
            cost = read_statement(fit)
        elif isinstance(fit, Release):
            spent = (("release", fit.budget),)
            cost = PrivacyStatement(fit.budget, "row", spent, fit.assumptions, gaussian_dp=False)
        require_instance("fit", cost, PrivacyStatement)
        if cost.seeded:
            raise ValueError(f"fit must be private to be counted, got one that is {NOT_PRIVATE}")
        self._require_process("fit with n_jobs=1 or in threads")
        with self._lock:
            self._require_alike(cost)
            most = self._most([*self._costs, cost])
            if _sum([*self._costs, cost]) > most * (1 + ROUNDING):
                raise ValueError(
                    f"odometer must have rho = {cost.with_secret_noise.rho:.4g} left of its limit, "
                    f"got {max(0.0, most - _sum(self._costs)):.4g} after {len(self._costs)} fits"
                )
            self._costs.append(cost)

    def __repr__(self) -> str:
        limit = "" if self.limit is None else f", limit={self.limit!r}"
        return f"<Odometer: {len(self._costs)} fits, rho = {_sum(self._costs):.4g}{limit}>"

    def __copy__(self) -> Odometer:
        return self

    def __deepcopy__(self, _: dict[int, Any]) -> Odometer:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _elsewhere, (self.limit, tuple(self._costs))

    def _require_alike(self, cost: PrivacyStatement) -> None:
        found = cost.with_secret_noise.neighbours
        for each in (self.limit, *(first.with_secret_noise for first in self._costs[:1])):
            if each is not None and each.neighbours is not found:
                wanted = each.neighbours.value
                raise ValueError(f"neighbours must be {wanted!r} in all fits, got {found.value!r}")
        for first in self._costs[:1]:
            if cost.unit != first.unit:
                raise ValueError(f"unit must be {first.unit!r} in all fits, got {cost.unit!r}")
            # The conversion must not be chosen after seeing a result.
            stated = self.limit is not None and self.limit.gaussian().rho > self.limit.rho
            if stated and cost.gaussian_dp != first.gaussian_dp:
                kinds = ("no known Gaussian DP", "Gaussian DP")
                wanted, got = kinds[first.gaussian_dp], kinds[cost.gaussian_dp]
                raise ValueError(f"fit must have {wanted}, like earlier fits, got {got}")

    def _most(self, costs: list[PrivacyStatement]) -> float:
        """Limit on ρ for fits of this kind; it is larger if they only add Gaussian noise."""
        if self.limit is None:
            return inf
        gaussian = all(each.gaussian_dp for each in costs[:1])
        return self.limit.gaussian().rho if gaussian else self.limit.rho


def read_statement(fit: str | Path) -> PrivacyStatement:
    """Read the privacy statement in a file that `privreg fit --output` wrote."""
    try:
        # As bytes: JSON detects the encoding, with a byte-order mark or without.
        found = json.loads(Path(fit).read_bytes())["privacy"]
        relation = {"neighbours": found["neighbours"]}
        spent = tuple(
            (str(each["on"]), Budget.zcdp(each["rho"], **relation)) for each in found["spent"]
        )
        seeded = found["seeded"] is not False
        total = fsum(budget.rho for _, budget in spent)
        mu = inf if found["mu"] is None else float(found["mu"])
        statement = PrivacyStatement(
            with_secret_noise=Budget.zcdp(total if seeded else found["rho"], **relation),
            # A fit without a stated unit is of a table in a file, which has no persons.
            unit=require_choice("unit", found.get("unit", "row"), ("row", "person")),
            spending=spent,
            assumptions=tuple(map(str, found["assumptions"])),
            seeded=seeded,
            gaussian_dp=seeded or mu < inf,
            delta=float(found["delta"]),
        )
        epsilon = inf if found["epsilon"] is None else float(found["epsilon"])
        rho = statement.with_secret_noise.rho
        # False for NaN and for infinite sums as well.
        follows = abs(total - rho) <= ROUNDING * min(total, rho)
        follows &= mu == inf or isclose(mu, statement.with_secret_noise.root)
        # Another version may convert a little better.
        follows &= isclose(epsilon, statement.epsilon(), rel_tol=1e-6)
    except (OSError, *UNREADABLE):
        found = short(str(fit))
        raise ValueError(f"fit must be a file of `privreg fit --output`, got {found}") from None
    if not follows:
        expected = "a file in which rho is the sum of its parts and agrees with mu and epsilon"
        raise ValueError(f"fit must be {expected}, got {short(str(fit))}")
    return statement


def privacy_as_json(privacy: PrivacyStatement) -> dict[str, Any]:
    """Convert a privacy statement to plain types, as in files for `read_statement`."""
    return {
        "seeded": privacy.seeded,
        "epsilon": privacy.epsilon(),
        "delta": privacy.delta,
        "rho": privacy.rho,
        "mu": privacy.mu,
        "unit": privacy.unit,
        "neighbours": privacy.with_secret_noise.neighbours.value,
        "spent": [{"on": what, "rho": budget.rho} for what, budget in privacy.spending],
        "assumptions": list(privacy.assumptions),
    }


def encoded(value: Any) -> Any:
    """Convert the state of a fit to JSON's types, with the names of its classes."""
    kind = f"{type(value).__module__}:{type(value).__qualname__}"
    if is_dataclass(value):
        own = {each.name: getattr(value, each.name) for each in fields(value) if each.init}
        return {"class": kind, "fields": encoded(own)["dict"]}
    if isinstance(value, Enum):
        return {"class": kind, "fields": {"value": value.value}}
    if isinstance(value, np.ndarray):
        cells = list(map(str, value.ravel().tolist()))
        return {"array": cells, "shape": value.shape, "type": value.dtype.str}
    if isinstance(value, dict):
        return {"dict": {str(name): encoded(part) for name, part in value.items()}}
    if isinstance(value, (list, tuple)):
        parts = [encoded(part) for part in value]
        return {"tuple": parts} if isinstance(value, tuple) else parts
    value = value.item() if isinstance(value, np.generic) else value
    return {"float": str(value)} if isinstance(value, float) and not isfinite(value) else value


def decoded(value: Any) -> Any:
    """Invert `encoded`; classes of other packages are refused."""
    match value:
        case {"class": name, "fields": own}:
            module, _, kind = name.partition(":")
            found: Any = module.startswith("privreg.") and getattr(import_module(module), kind)
            if not (is_dataclass(found) or issubclass(found, Enum)):
                raise ValueError
            return found(**{part: decoded(each) for part, each in own.items()})
        case {"array": cells, "shape": shape, "type": kind}:
            return np.array(cells, dtype=kind).reshape(shape)
        case {"dict": parts}:
            return {name: decoded(part) for name, part in parts.items()}
        case {"tuple": parts}:
            return tuple(map(decoded, parts))
        case {"float": text}:
            return float(text)
        case list():
            return [decoded(part) for part in value]
    return value


def as_json(value: Any, indent: int) -> str:
    """Write plain types as JSON, with null for numbers that are not finite."""
    return json.dumps(_finite(value), indent=indent, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not isfinite(value) else value


def _sum(costs: tuple[PrivacyStatement, ...] | list[PrivacyStatement]) -> float:
    return fsum(each.with_secret_noise.rho for each in costs)


def _elsewhere(limit: Budget | None, costs: tuple[PrivacyStatement, ...]) -> Odometer:
    """Odometer in another process: it shows the counts as they were sent, and refuses new fits."""
    found = Odometer(limit)
    found._costs, found._process = list(costs), None
    return found
