"""Kinds of check: what an observation must satisfy, and whether its noise lets one say so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Annotated, Any, Literal, Self, assert_never

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import ConfigDict, Discriminator, Field, Tag, model_validator

from reproduction.claims.evidence import Evidence, Label, Number
from reproduction.engine.parameters import Strict
from reproduction.engine.quantities import Flag

DECISIVE_SIGMAS = 2.0

Decision = Literal["passed", "refuted", "undecided"]
Floats = NDArray[np.float64]
Tolerance = Annotated[float, Field(ge=0, allow_inf_nan=False, strict=True)]
Numbers = Annotated[tuple[Number, ...], Field(min_length=1)]


def _form(value: Any) -> str:
    if isinstance(value, Mapping | Evidence):
        return "artifact"
    return "list" if isinstance(value, list | tuple) else "number"


# A number that another artifact holds is named, never retyped.
Bound = Annotated[
    Annotated[Number, Tag("number")] | Annotated[Evidence, Tag("artifact")], Discriminator(_form)
]
Expected = Annotated[
    Annotated[Number, Tag("number")]
    | Annotated[Numbers, Tag("list")]
    | Annotated[Evidence, Tag("artifact")],
    Discriminator(_form),
]


class _Kind(Strict):
    # JSON has no infinity of its own, and an infinite divergence is a legal value here.
    model_config = ConfigDict(ser_json_inf_nan="strings")


class Close(_Kind):
    """Equal up to the largest of the tolerances that are given."""

    kind: Literal["close"]
    expected: Expected = Field(description="A number, a list, or the evidence that holds them.")
    absolute: Tolerance | None = None
    relative: Tolerance | None = Field(None, description="In units of |expected|.")
    sigmas: Tolerance | None = Field(None, description="In standard errors of the observation.")

    @model_validator(mode="after")
    def _has_a_tolerance(self) -> Self:
        if self.absolute is None and self.relative is None and self.sigmas is None:
            raise ValueError("one of absolute, relative and sigmas must be given")
        return self

    @property
    def counts_standard_errors_only(self) -> bool:
        """Whether the check says nothing about an observation without a standard error."""
        return self.absolute is None and self.relative is None


class Between(_Kind):
    """At least `low` and at most `high`."""

    kind: Literal["between"]
    low: Bound
    high: Bound

    @model_validator(mode="after")
    def _is_an_interval(self) -> Self:
        if isinstance(self.low, Evidence) or isinstance(self.high, Evidence):
            return self
        if self.low > self.high:
            raise ValueError(f"low = {self.low:g}: expected at most high = {self.high:g}")
        return self


class Below(_Kind):
    """At most `high`."""

    kind: Literal["below"]
    high: Bound


class Above(_Kind):
    """At least `low`."""

    kind: Literal["above"]
    low: Bound


class Monotone(_Kind):
    """Each value of a curve against the next one, in the order of the evidence."""

    kind: Literal["monotone"]
    direction: Literal["increasing", "decreasing"]
    strict: Flag = False
    slack: Tolerance = Field(0.0, description="A step this far the wrong way is forgiven.")


class Ordered(_Kind):
    """Values at labels of a dimension, the smallest first."""

    kind: Literal["ordered"]
    dimension: str
    labels: Annotated[tuple[Label, ...], Field(min_length=2)]
    strict: Flag = False
    slack: Tolerance = Field(0.0, description="A step this far the wrong way is forgiven.")


ScalarCheck = Annotated[Close | Between | Below | Above, Field(discriminator="kind")]


class All(_Kind):
    """The same scalar check for every element of an array."""

    kind: Literal["all"]
    of: ScalarCheck

    @model_validator(mode="after")
    def _takes_one_number(self) -> Self:
        if isinstance(self.of, Close) and isinstance(self.of.expected, tuple):
            raise ValueError("of.expected is a list: expected one number; `close` takes a list")
        return self


Check = Close | Between | Below | Above | Monotone | Ordered | All
REFERENCES = ("expected", "low", "high")
KINDS = ("close", "between", "below", "above", "monotone", "ordered", "all")


@dataclass(frozen=True)
class Outcome:
    """What a check finds.

    Attributes
    ----------
    decision : {"passed", "refuted", "undecided"}
        Undecided if the noise straddles a bound.
    passed : bool
        Whether the observation satisfies the check, noise ignored.
    margin : float
        Distance to the nearest bound in the units of the observation, negative outside; where there
        are several comparisons, of the one that the decision hangs on.
    standard_error : float
        Of that comparison.
    index : int
        Position of that comparison (C order); a step of a curve is at its first point.
    """

    decision: Decision
    passed: bool
    margin: float
    standard_error: float
    index: int


def assess(check: Check, observed: ArrayLike, standard_error: ArrayLike = 0.0) -> Outcome:
    r"""Decide whether an observation satisfies a check, given its noise.

    .. math:: |m_i| \ge z\, s_i,\qquad z = 2

    decides comparison i, where m_i is the signed distance to the nearest bound and s_i the standard
    error of that distance. A check of k comparisons passes if each of them passes decisively. It is
    refuted if one fails by z_k standard errors, where z_k gives the whole family the level of a
    single comparison: :math:`\Phi(-z_k) = \Phi(-2) / k`.

    Parameters
    ----------
    check : Check
        What must hold.
    observed : array_like
        One number; for `monotone`, `ordered` and a list of expected values a vector; for `all` any
        shape. Infinity is a legal observation, NaN is not.
    standard_error : array_like
        Of each element, at least 0; one that is NaN counts as infinite. A tolerance in standard
        errors has the noise in it already: then s_i = 0. The elements of a curve are taken
        as independent, which overstates the noise of those that share their random numbers.

    Returns
    -------
    Outcome

    Raises
    ------
    ValueError
        The observation has a shape that the check does not take, or holds a NaN.
    """
    values = _shaped(check, observed)
    margins, noise = _comparisons(check, values, _cleaned(standard_error, values))
    satisfied, refuted = _refuted(check, margins, noise)
    clear = satisfied & (margins >= DECISIVE_SIGMAS * noise)
    decision: Decision = "refuted" if refuted.any() else "passed" if clear.all() else "undecided"
    if decision == "refuted":
        index = int(np.argmin(np.where(refuted, margins, np.inf)))
    else:
        index = int(np.argmin(margins - DECISIVE_SIGMAS * noise))
    return Outcome(
        decision=decision,
        passed=bool(satisfied.all()),
        margin=float(margins[index]),
        standard_error=float(noise[index]),
        index=index,
    )


def refuses(check: Check, observation: ArrayLike, standard_error: ArrayLike = 0.0) -> bool:
    """Whether a check refuses an observation that has this standard error.

    One number against `all` stands for any single element of the array: each position must refuse
    it. A list of another length than `standard_error` is judged with the largest one.
    """
    values = np.asarray(observation, dtype=np.float64)
    error = np.asarray(standard_error, dtype=np.float64)
    anywhere = isinstance(check, All) and values.ndim == 0
    if values.shape != error.shape:
        if anywhere:
            values = np.broadcast_to(values, error.shape)
        elif error.ndim:
            error = np.asarray(error.max())
    values = _shaped(check, values)
    margins, noise = _comparisons(check, values, _cleaned(error, values))
    refuted = _refuted(check, margins, noise)[1]
    return bool(refuted.all() if anywhere else refuted.any())


def is_scalar(check: Check) -> bool:
    """Whether a check takes one number."""
    if isinstance(check, Close):
        return not isinstance(check.expected, tuple)
    return isinstance(check, Between | Below | Above)


def references(check: Check) -> dict[str, Evidence]:
    """The bounds that a check reads from an artifact, by key."""
    inner = check.of if isinstance(check, All) else check
    found = {key: getattr(inner, key, None) for key in REFERENCES}
    return {key: value for key, value in found.items() if isinstance(value, Evidence)}


def region(
    check: Check, observed: ArrayLike, standard_error: ArrayLike = 0.0
) -> tuple[Floats, Floats] | None:
    """Least and largest value that a check takes at each element; None for one on an order."""
    inner = check.of if isinstance(check, All) else check
    values = np.asarray(observed, dtype=np.float64)
    if isinstance(inner, Monotone | Ordered):
        return None
    infinite = np.full(values.shape, np.inf)
    if isinstance(inner, Close):
        expected = np.broadcast_to(_numbers(inner.expected), values.shape)
        tolerance = _tolerance(inner, expected, _cleaned(standard_error, values))
        return expected - tolerance, expected + tolerance
    low = (
        -infinite
        if isinstance(inner, Below)
        else np.broadcast_to(_numbers(inner.low), values.shape)
    )
    high = (
        infinite
        if isinstance(inner, Above)
        else np.broadcast_to(_numbers(inner.high), values.shape)
    )
    return low, high


def largest_z(check: Check, observed: ArrayLike, standard_error: ArrayLike) -> float | None:
    r"""The difference of largest absolute value to the expectation, in standard errors.

    None unless the check counts standard errors and there is one to count.
    """
    inner = check.of if isinstance(check, All) else check
    if not isinstance(inner, Close) or inner.sigmas is None:
        return None
    values = np.asarray(observed, dtype=np.float64)
    error = _cleaned(standard_error, values)
    usable = (error > 0) & np.isfinite(error)
    if not usable.any():
        return None
    expected = np.broadcast_to(_numbers(inner.expected), values.shape)
    z = (values[usable] - expected[usable]) / error[usable]
    return float(z[np.argmax(np.abs(z))])


def misshapen(check: Check, shape: tuple[int, ...]) -> str:
    """What a check takes, if it does not take an observation of this shape; else nothing."""
    if is_scalar(check):
        fits, wanted = shape == (), "one number"
    elif isinstance(check, Close):
        length = len(np.atleast_1d(_numbers(check.expected)))
        fits, wanted = shape == (length,), f"a list of {length}"
    elif isinstance(check, Ordered):
        length = len(check.labels)
        fits, wanted = shape == (length,), f"a list of {length}, one a label"
    elif isinstance(check, Monotone):
        fits, wanted = len(shape) == 1 and shape[0] > 1, "a list of at least two"
    else:
        fits, wanted = 0 not in shape, "at least one number"
    return "" if fits else wanted


def _shaped(check: Check, observed: ArrayLike) -> Floats:
    values = np.asarray(observed, dtype=np.float64)
    wanted = misshapen(check, values.shape)
    if wanted:
        found = f"an array of shape {values.shape}" if values.ndim else "one number"
        raise ValueError(f"check {check.kind!r} takes {wanted}, found {found}")
    if np.isnan(values).any():
        raise ValueError(f"check {check.kind!r} takes numbers, found NaN")
    return values


def _cleaned(standard_error: ArrayLike, values: Floats) -> Floats:
    error = np.broadcast_to(np.asarray(standard_error, dtype=np.float64), values.shape)
    # An infinite observation has no error; a finite one whose error is unknown decides nothing.
    return np.where(np.isinf(values), 0.0, np.where(np.isnan(error), np.inf, error))


def _refuted(
    check: Check, margins: Floats, noise: Floats
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    strict = isinstance(check, Monotone | Ordered) and check.strict
    satisfied = margins > 0 if strict else margins >= 0
    return satisfied, ~satisfied & (margins <= -_family_sigmas(noise) * noise)


def _family_sigmas(noise: Floats) -> float:
    comparisons = int(np.count_nonzero(noise))
    if comparisons <= 1:
        return DECISIVE_SIGMAS
    normal = NormalDist()
    return -normal.inv_cdf(normal.cdf(-DECISIVE_SIGMAS) / comparisons)


def _comparisons(check: Check, values: Floats, error: Floats) -> tuple[Floats, Floats]:
    if isinstance(check, All):
        return _comparisons(check.of, values, error)
    if isinstance(check, Monotone | Ordered):
        descending = isinstance(check, Monotone) and check.direction == "decreasing"
        steps = _difference(values[1:], values[:-1]) * (-1.0 if descending else 1.0)
        margins, noise = steps + check.slack, np.hypot(error[1:], error[:-1])
    elif isinstance(check, Close):
        margins, noise = _closeness(check, values, error)
    elif isinstance(check, Between):
        margins = np.minimum(
            _difference(values, _numbers(check.low)), _difference(_numbers(check.high), values)
        )
        noise = error
    elif isinstance(check, Below):
        margins, noise = _difference(_numbers(check.high), values), error
    elif isinstance(check, Above):
        margins, noise = _difference(values, _numbers(check.low)), error
    else:
        assert_never(check)
    margins = np.ravel(margins)
    return margins, np.where(np.isinf(margins), 0.0, np.ravel(noise))


def _closeness(check: Close, values: Floats, error: Floats) -> tuple[Floats, Floats]:
    expected = _numbers(check.expected)
    margins = _difference(_tolerance(check, expected, error), np.abs(_difference(values, expected)))
    return margins, error if check.sigmas is None else np.zeros_like(error)


def _tolerance(check: Close, expected: Floats, error: Floats) -> Floats:
    tolerance = np.maximum(check.absolute or 0.0, (check.sigmas or 0.0) * error)
    with np.errstate(invalid="ignore"):
        relative = np.abs(expected) * (check.relative or 0.0)
    # Nothing finite is close to infinity, whatever the relative tolerance.
    return np.where(np.isinf(expected), 0.0, np.maximum(tolerance, relative))


def _numbers(bound: float | tuple[float, ...] | Evidence) -> Floats:
    if isinstance(bound, Evidence):
        raise ValueError(f"{bound.artifact}.{bound.variable}: expected to be read before it counts")
    return np.asarray(bound, dtype=np.float64)


def _difference(left: Floats, right: Floats) -> Floats:
    """left - right, where equal infinities differ by 0."""
    with np.errstate(invalid="ignore"):
        return np.where(left == right, 0.0, np.subtract(left, right))
