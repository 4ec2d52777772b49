"""Checks of evidence: bounds on a number, decided with its noise.

A `Probe` names a variable of an artifact, at given coordinate labels, and a check of its values.
`decide` reads the values and returns passed, failed, or inconclusive if they are too noisy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, assert_never

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    model_validator,
)

from privreg.checks import expected_choice
from reproduction.engine.parameters import Artifact, Name, Strict, choose
from reproduction.engine.quantities import Flag

if TYPE_CHECKING:
    import xarray as xr

DECISIVE_SIGMAS = 2.0
MOST_DOUBLINGS = 40
LABEL_TOLERANCE = 1e-9
SHORT, SHOWN_LABELS = 4, 8
# The plan says it of what a recipe declares, this of stages that are written by hand.
POWERLESS = (
    "one of resolves, rejects and wrong must be given, since the evidence has a standard error"
)
ERROR_SUFFIX = "_standard_error"

Outcome = Literal["passed", "failed", "inconclusive", "untested"]
Floats = NDArray[np.float64]
Label = bool | int | float | str
Shown = float | tuple[float, ...] | None
Scale = Literal["paper", "quick"]
Text = Annotated[str, Field(min_length=1)]


def _no_nan(value: float) -> float:
    if math.isnan(value):
        raise ValueError("must be a number, got NaN")
    return value


def _form(value: Any) -> str:
    if isinstance(value, Mapping | BaseModel):
        return "mapping"
    return "list" if isinstance(value, list | tuple) else "number"


# An infinite divergence is a legal value.
Number = Annotated[float, Field(strict=True), AfterValidator(_no_nan)]
Numbers = Annotated[tuple[Number, ...], Field(min_length=1)]
Tolerance = Annotated[float, Field(ge=0, allow_inf_nan=False, strict=True)]


class Evidence(Strict):
    """Variable of an artifact, at given coordinate labels."""

    artifact: Artifact = Field(description="STAGE/EXPERIMENT, or data/DATASET.")
    variable: Name
    select: dict[Name, Label | tuple[Label, ...]] = Field(
        default_factory=dict, description="Coordinate: one label, or several in this order."
    )


# A number that another artifact holds is named, never retyped.
Bound = Annotated[
    Annotated[Number, Tag("number")] | Annotated[Evidence, Tag("mapping")], Discriminator(_form)
]
Expected = Annotated[
    Annotated[Number, Tag("number")]
    | Annotated[Numbers, Tag("list")]
    | Annotated[Evidence, Tag("mapping")],
    Discriminator(_form),
]


class Close(Strict):
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


class Between(Strict):
    """At least `low` and at most `high`."""

    kind: Literal["between"]
    low: Bound
    high: Bound

    @model_validator(mode="after")
    def _is_an_interval(self) -> Self:
        if isinstance(self.low, Evidence) or isinstance(self.high, Evidence):
            return self
        if self.low > self.high:
            raise ValueError(f"low must be at most high = {self.high:g}, got {self.low:g}")
        return self


class Below(Strict):
    """At most `high`."""

    kind: Literal["below"]
    high: Bound


class Above(Strict):
    """At least `low`."""

    kind: Literal["above"]
    low: Bound


class Monotone(Strict):
    """Each value of a curve is compared with the next one, in the order of the evidence."""

    kind: Literal["monotone"]
    direction: Literal["increasing", "decreasing"]
    strict: Flag = False
    slack: Tolerance = Field(0.0, description="Largest step the wrong way that still passes.")


class Ordered(Strict):
    """Values at the listed labels of a dimension must be in ascending order."""

    kind: Literal["ordered"]
    dimension: str
    labels: Annotated[tuple[Label, ...], Field(min_length=2)]
    strict: Flag = False
    slack: Tolerance = Field(0.0, description="Largest step the wrong way that still passes.")


class All(Strict):
    """Scalar check applied to every element of an array."""

    kind: Literal["all"]
    of: Annotated[Close | Between | Below | Above, Field(discriminator="kind")]

    @model_validator(mode="after")
    def _takes_one_number(self) -> Self:
        if isinstance(self.of, Close) and isinstance(self.of.expected, tuple):
            raise ValueError("of.expected must be one number, got a list, which `close` takes")
        return self


Check = Close | Between | Below | Above | Monotone | Ordered | All
BOUNDS = ("expected", "low", "high")
KINDS = ("close", "between", "below", "above", "monotone", "ordered", "all")


def _known_kind(value: Any) -> Any:
    if isinstance(value, Mapping) and "kind" in value and value["kind"] not in KINDS:
        raise ValueError(f"kind must be {expected_choice(value['kind'], KINDS)}")
    return value


AnyCheck = Annotated[Check, Field(discriminator="kind"), BeforeValidator(_known_kind)]


class Beside(Strict):
    """Rejected observation, given by its distance to the expected value."""

    times: Number | None = Field(None, description="As a multiple of the expected value.")
    plus: Number | None = Field(None, description="Difference from the expected value.")

    @model_validator(mode="after")
    def _says_one_thing(self) -> Self:
        if (self.times is None) == (self.plus is None):
            raise ValueError("one of times and plus must be given for a rejected observation")
        return self


Rejected = Annotated[
    Annotated[Number, Tag("number")]
    | Annotated[Numbers, Tag("list")]
    | Annotated[Beside, Tag("mapping")],
    Discriminator(_form),
]


class Wrong(Strict):
    """A small wrong version of a statement, which the evidence must refuse."""

    says: Text = Field(description="What is wrong, as in 'without its logarithm'.")
    evidence: Evidence | None = Field(None, description="Keys that differ from the check's own.")
    check: AnyCheck | None = Field(None, description="The wrong check, if it differs.")

    @model_validator(mode="after")
    def _differs(self) -> Self:
        if self.evidence is None and self.check is None:
            raise ValueError("evidence or check of a wrong version must be given, got neither")
        return self


class Probe(Strict):
    """Check of one piece of evidence, with values that it must refuse."""

    label: Text | None = Field(None, description="Subject of this check, if there are several.")
    evidence: Evidence
    check: AnyCheck
    resolves: Annotated[float, Field(gt=0, allow_inf_nan=False, strict=True)] | None = Field(
        None, description="An observation this far out of bounds must be refused despite noise."
    )
    rejects: tuple[Rejected, ...] = Field(
        (), description="Observations that the check must refuse; lists if the check takes a list."
    )
    wrong: tuple[Wrong, ...] = Field(
        (), description="Small wrong versions of the statement, which the evidence must refuse."
    )

    @model_validator(mode="before")
    @classmethod
    def _wrong_evidence_is_whole(cls, raw: Any) -> Any:
        # The evidence of a wrong version says where it differs from the check's own.
        own = raw.get("evidence") if isinstance(raw, Mapping) else None
        if not (isinstance(own, Mapping) and isinstance(raw.get("wrong"), list | tuple)):
            return raw
        whole = [
            {**each, "evidence": {**own, **each["evidence"]}}
            if isinstance(each, Mapping) and isinstance(each.get("evidence"), Mapping)
            else each
            for each in raw["wrong"]
        ]
        return {**raw, "wrong": whole}

    @model_validator(mode="after")
    def _can_fail(self) -> Self:
        inner = _inner(self.check)
        if self.resolves is not None and not isinstance(inner, Between | Below | Above):
            raise ValueError("resolves is only for checks of kind between, below or above")
        if isinstance(inner, Ordered) and inner.dimension in self.evidence.select:
            raise ValueError(
                f"evidence.select.{inner.dimension} must not be given:"
                " the check orders that dimension"
            )
        # What a check expects may lie in an artifact; then its power shows when it is judged.
        if not references(self.check):
            rejected_values(self, self.check)
        return self

    @property
    def reads(self) -> Iterator[Evidence]:
        """Evidence that the probe reads, its own first."""
        for each in (self, *self.falsifiers):
            yield from (each.evidence, *references(each.check).values())

    @property
    def artifacts(self) -> tuple[str, ...]:
        """Artifacts that the probe reads, its own first."""
        return tuple(dict.fromkeys(evidence.artifact for evidence in self.reads))

    @property
    def falsifiers(self) -> tuple[Probe, ...]:
        """The wrong versions as separate checks, each labelled with its statement."""
        return tuple(
            Probe.model_validate(
                {
                    "label": each.says,
                    "evidence": each.evidence or self.evidence,
                    "check": each.check or self.check,
                }
            )
            for each in self.wrong
        )


def _inner(check: Check) -> Any:
    return check.of if isinstance(check, All) else check


def references(check: Check) -> dict[str, Evidence]:
    """The bounds that a check reads from an artifact, by key."""
    found = {key: getattr(_inner(check), key, None) for key in BOUNDS}
    return {key: value for key, value in found.items() if isinstance(value, Evidence)}


def rejected_values(probe: Probe, check: Check) -> tuple[Any, ...]:
    """Observations that the check must refuse, its bounds being known; verified without noise."""
    inner = _inner(check)
    found: list[Any] = []
    for rejected in probe.rejects:
        if not isinstance(rejected, Beside):
            found.append(rejected)
        elif not isinstance(inner, Close):
            raise ValueError("rejects must be numbers, unless the check is of kind 'close'")
        else:
            expected = _numbers(inner.expected)
            found.append(
                expected * rejected.times
                if rejected.times is not None
                else expected + (rejected.plus or 0.0)
            )
    for values in found:
        if not refuses(check, values):
            shown = np.asarray(values).tolist()
            raise ValueError(
                f"check must refuse what `rejects` lists, got one that cannot refuse {shown!r}"
            )
    if probe.resolves is not None:
        found += [float(inner.low) - probe.resolves] if hasattr(inner, "low") else []
        found += [float(inner.high) + probe.resolves] if hasattr(inner, "high") else []
    return tuple(found)


@dataclass(frozen=True)
class Assessment:
    """Finding of a check; among several comparisons, the one that decides.

    The margin is the signed distance to the nearest bound, negative outside the bounds. The index
    is in C order; a step of a curve has the index of its first point. `passed` ignores the noise.
    """

    decision: Literal["passed", "refuted", "undecided"]
    passed: bool
    margin: float
    standard_error: float
    index: int


def assess(check: Check, observed: ArrayLike, standard_error: ArrayLike = 0.0) -> Assessment:
    r"""Decide whether an observation satisfies a check, given its noise.

    .. math:: |m_i| \ge z\, s_i,\qquad z = 2

    decides comparison i, where m_i is the signed distance to the nearest bound and s_i the standard
    error of that distance. A check of k comparisons passes if each of them passes decisively. It is
    refuted if one fails by z_k standard errors, where z_k gives the whole family the level of a
    single comparison: :math:`\Phi(-z_k) = \Phi(-2) / k`.

    A standard error of NaN counts as infinite. A tolerance in standard errors already contains the
    noise: then s_i = 0. Elements of a curve are treated as independent, which overstates the noise
    if they share random numbers. A wrong shape or a NaN raises a ValueError.
    """
    values = _shaped(check, observed)
    margins, noise = _comparisons(check, values, _cleaned(standard_error, values))
    satisfied, refuted = _refuted(check, margins, noise)
    clear = satisfied & (margins >= DECISIVE_SIGMAS * noise)
    if refuted.any():
        index = int(np.argmin(np.where(refuted, margins, np.inf)))
    else:
        index = int(np.argmin(margins - DECISIVE_SIGMAS * noise))
    return Assessment(
        decision="refuted" if refuted.any() else "passed" if clear.all() else "undecided",
        passed=bool(satisfied.all()),
        margin=float(margins[index]),
        standard_error=float(noise[index]),
        index=index,
    )


def refuses(check: Check, observation: ArrayLike, standard_error: ArrayLike = 0.0) -> bool:
    """True if a check refuses an observation with this standard error.

    For a check of kind `all`, one number stands for any element: each position must refuse it. A
    list of another length than `standard_error` is judged with the largest standard error.
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


def region(
    check: Check, observed: ArrayLike, standard_error: ArrayLike = 0.0
) -> tuple[Floats, Floats] | None:
    """Least and largest value that a check accepts at each element; None for checks of order."""
    inner = _inner(check)
    values = np.asarray(observed, dtype=np.float64)
    if isinstance(inner, Monotone | Ordered):
        return None
    if isinstance(inner, Close):
        expected = np.broadcast_to(_numbers(inner.expected), values.shape)
        tolerance = _tolerance(inner, expected, _cleaned(standard_error, values))
        return expected - tolerance, expected + tolerance
    low = _numbers(getattr(inner, "low", -math.inf))
    high = _numbers(getattr(inner, "high", math.inf))
    return np.broadcast_to(low, values.shape), np.broadcast_to(high, values.shape)


def largest_z(check: Check, observed: ArrayLike, standard_error: ArrayLike) -> float | None:
    r"""Difference from the expectation, in standard errors, that is largest in absolute value.

    None unless the tolerance is in standard errors and some of them are positive and finite.
    """
    inner = _inner(check)
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


def _is_scalar(check: Check) -> bool:
    return isinstance(check, Between | Below | Above) or (
        isinstance(check, Close) and not isinstance(check.expected, tuple)
    )


def _misshapen(check: Check, shape: tuple[int, ...]) -> str:
    """Shape that a check needs, if the observation has another shape; else an empty text."""
    if _is_scalar(check):
        fits, wanted = shape == (), "one number"
    elif isinstance(check, Close):
        length = len(np.atleast_1d(_numbers(check.expected)))
        fits, wanted = shape == (length,), f"a list of {length}"
    elif isinstance(check, Ordered):
        length = len(check.labels)
        fits, wanted = shape == (length,), f"a list of {length}, one per label"
    elif isinstance(check, Monotone):
        fits, wanted = len(shape) == 1 and shape[0] > 1, "a list of at least two"
    else:
        fits, wanted = 0 not in shape, "at least one number"
    return "" if fits else wanted


def _shaped(check: Check, observed: ArrayLike) -> Floats:
    values = np.asarray(observed, dtype=np.float64)
    wanted = _misshapen(check, values.shape)
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
    noise = error
    match check:
        case All():
            return _comparisons(check.of, values, error)
        case Monotone() | Ordered():
            descending = isinstance(check, Monotone) and check.direction == "decreasing"
            steps = _difference(values[1:], values[:-1]) * (-1.0 if descending else 1.0)
            margins, noise = steps + check.slack, np.hypot(error[1:], error[:-1])
        case Close():
            expected = _numbers(check.expected)
            distance = np.abs(_difference(values, expected))
            margins = _difference(_tolerance(check, expected, error), distance)
            noise = error if check.sigmas is None else np.zeros_like(error)
        case Between():
            below = _difference(_numbers(check.high), values)
            margins = np.minimum(_difference(values, _numbers(check.low)), below)
        case Below():
            margins = _difference(_numbers(check.high), values)
        case Above():
            margins = _difference(values, _numbers(check.low))
        case _:
            assert_never(check)
    margins = np.ravel(margins)
    return margins, np.where(np.isinf(margins), 0.0, np.ravel(noise))


def _tolerance(check: Close, expected: Floats, error: Floats) -> Floats:
    tolerance = np.maximum(check.absolute or 0.0, (check.sigmas or 0.0) * error)
    with np.errstate(invalid="ignore"):
        relative = np.abs(expected) * (check.relative or 0.0)
    # Nothing finite is close to infinity, whatever the relative tolerance.
    return np.where(np.isinf(expected), 0.0, np.maximum(tolerance, relative))


def _numbers(bound: float | tuple[float, ...] | Evidence) -> Floats:
    return np.asarray(bound, dtype=np.float64)


def _difference(left: Floats, right: Floats) -> Floats:
    """left - right, where equal infinities differ by 0."""
    with np.errstate(invalid="ignore"):
        return np.where(left == right, 0.0, np.subtract(left, right))


# Evidence


@dataclass(frozen=True)
class Observation:
    """Selected values, their labels in C order, and the trials behind their standard errors."""

    values: Floats
    standard_error: Floats | None
    labels: tuple[str, ...]
    trials: int | None
    meaning: str

    def place(self, check: Check, index: int) -> str:
        """Place of a check's comparison of this index; empty for a single number."""
        if isinstance(check, Monotone | Ordered):
            return f"from {self.labels[index]} to {self.labels[index + 1]}"
        return self.labels[index]

    def flattened(self) -> Observation:
        """Observed values as a list, in C order."""
        error = None if self.standard_error is None else self.standard_error.ravel()
        return replace(self, values=self.values.ravel(), standard_error=error)


def observe(evidence: Evidence, check: Check, dataset: xr.Dataset) -> Observation:
    """Select the evidence of a check; a check of kind `ordered` adds its labels to the selection.

    A label matches a coordinate's number to a relative 1e-9. Several coordinates may share a
    dimension. A missing variable, coordinate or label raises a ValueError of one line.
    """
    where = f"{evidence.artifact}.{evidence.variable}"
    choose(evidence.variable, [str(name) for name in dataset.data_vars], f"{evidence.artifact}")
    variable = dataset[evidence.variable]
    if variable.dtype.kind not in "biuf":
        raise ValueError(f"{where}: expected numbers, found {variable.dtype}")
    selection: dict[str, Any] = dict(evidence.select)
    if isinstance(check, Ordered):
        selection[check.dimension] = check.labels
    chosen = _select(variable, selection, where)
    if _is_scalar(check) and chosen.size == 1:
        chosen = chosen.squeeze()
    errors = _standard_error(dataset, variable, selection, where)
    if errors is not None:
        errors = errors.squeeze().broadcast_like(chosen).transpose(*chosen.dims)
    trials = variable.attrs.get("trials", dataset.attrs.get("trials", dataset.sizes.get("trial")))
    return Observation(
        values=chosen.values.astype(np.float64),
        standard_error=None if errors is None else errors.values.astype(np.float64),
        labels=_labels(chosen),
        trials=None if trials is None or int(trials) < 1 else int(trials),
        meaning=str(variable.attrs.get("long_name", "")),
    )


def _standard_error(
    dataset: xr.Dataset, variable: xr.DataArray, selection: Mapping[str, Any], where: str
) -> xr.DataArray | None:
    key = "ancillary_variables"
    for name in str(variable.attrs.get(key) or variable.encoding.get(key, "")).split():
        if name.endswith(ERROR_SUFFIX):
            if name not in dataset:
                raise ValueError(f"{where}: no ancillary variable {name!r} in the artifact")
            return _select(dataset[name], selection, where)
    return None


def _select(array: xr.DataArray, selection: Mapping[str, Any], where: str) -> xr.DataArray:
    vectors = [str(name) for name, found in array.coords.items() if found.ndim == 1]
    by_dimension: dict[str, list[str]] = {}
    for name in selection:
        choose(name, vectors, f"{where}.select")
        by_dimension.setdefault(str(array.coords[name].dims[0]), []).append(name)
    for dimension, names in by_dimension.items():
        # The list goes first, because its order is the one to keep.
        names.sort(key=lambda name: not isinstance(selection[name], tuple))
        kept: list[int] | None = None
        for name in names:
            wanted = selection[name]
            matches = [
                index
                for label in (wanted if isinstance(wanted, tuple) else (wanted,))
                for index in _matches(array.coords[name].values, label, f"{where}.select.{name}")
            ]
            kept = matches if kept is None else [index for index in kept if index in set(matches)]
        if not kept:
            together = ", ".join(f"{name}={selection[name]}" for name in names)
            raise ValueError(f"{where}.select: no element has {together} at once")
        single = len(kept) == 1 and not isinstance(selection[names[0]], tuple)
        array = array.isel({dimension: kept[0] if single else kept})
    return array


def _matches(values: NDArray[Any], label: Label, where: str) -> list[int]:
    if values.dtype.kind not in "biuf":
        texts = [str(value) for value in values]
        found = [index for index, text in enumerate(texts) if text == str(label)]
        if not found:
            raise ValueError(f"{where} = {label!r}: {expected_choice(str(label), set(texts))}")
        return found
    numbers = values.astype(np.float64)
    listed = [f"{value:.6g}" for value in numbers]
    if len(listed) > SHOWN_LABELS:
        listed = [*listed[: SHOWN_LABELS - 2], "…", listed[-1]]
    expected = f"{where} = {label!r}: expected one of {', '.join(listed)}"
    try:
        target = float(label)  # YAML reads 1e-3 as text
    except ValueError:
        raise ValueError(expected) from None
    close = np.abs(numbers - target) <= LABEL_TOLERANCE * abs(target)
    found = np.flatnonzero((numbers == target) | close).tolist()
    if not found:
        closest = numbers[np.argmin(np.abs(numbers - target))]
        raise ValueError(f"{expected}; the nearest is {closest:.12g}")
    return found


def _labels(array: xr.DataArray) -> tuple[str, ...]:
    axes = [_axis_labels(array, str(dimension)) for dimension in array.dims]
    return tuple(
        ", ".join(axis[position] for axis, position in zip(axes, index, strict=True))
        for index in np.ndindex(array.shape)
    )


def _axis_labels(array: xr.DataArray, dimension: str) -> list[str]:
    along = [str(name) for name, found in array.coords.items() if found.dims == (dimension,)]
    if not along:
        return [f"{dimension}[{index}]" for index in range(array.sizes[dimension])]
    columns = []
    for name in [dimension] if dimension in along else along:
        values = array.coords[name].values
        form = ".6g" if values.dtype.kind == "f" else ""
        columns.append([f"{name}={value:{form}}" for value in values])
    return [", ".join(row) for row in zip(*columns, strict=True)]


# Decision


class CheckResult(Strict):
    """Outcome of a check, and the observed values."""

    # JSON has no infinity of its own.
    model_config = ConfigDict(ser_json_inf_nan="strings")

    label: str | None
    outcome: Outcome
    reason: str
    observed: Shown = None
    standard_error: Shown = None
    labels: tuple[str, ...] = ()
    expected: str
    low: Shown = None
    high: Shown = None
    rejected: tuple[float | tuple[float, ...], ...] = ()
    margin: float | None = None
    margin_standard_error: float | None = None
    z: float | None = None
    at: str | None = None
    trials: int | None = None
    trials_needed: int | None = None
    artifact: str
    variable: str
    meaning: str = ""
    select: str
    digests: dict[str, str]


def decide(
    probe: Probe, datasets: Mapping[str, xr.Dataset], digests: Mapping[str, str], scale: Scale
) -> CheckResult:
    """Decide a check from the artifacts that it reads and the digests of their files.

    An error in a check or in its artifacts leaves the check untested, with the reason.
    """
    try:
        found, is_noisy = _weighed(probe, datasets)
        if is_noisy and not (probe.resolves or probe.rejects or probe.wrong):
            found |= {"outcome": "untested", "reason": POWERLESS}
        for each in probe.falsifiers if found["outcome"] == "passed" else ():
            if _weighed(each, datasets)[0]["outcome"] != "failed":
                reason = f"the evidence does not refuse the wrong version: {each.label}"
                found |= {"outcome": "inconclusive", "reason": reason}
                break
    except Exception as error:
        # Another scale may leave out the very setting that a check is about; a message such as a
        # missing key's says little without its error's name.
        said = " ".join(str(error).split())
        said = said if isinstance(error, ValueError) else f"{type(error).__name__}: {said}"
        reason = f"left out of the reduced scale: {said}" if scale == "quick" else said
        found = {"outcome": "untested", "reason": reason, "expected": describe(probe.check)}
    return CheckResult(
        **found,
        label=probe.label,
        artifact=probe.evidence.artifact,
        variable=probe.evidence.variable,
        select=selection(probe.evidence.select),
        digests={name: digests[name] for name in probe.artifacts if name in digests},
    )


def is_stand_in(dataset: xr.Dataset) -> bool:
    """True if bundled data stands in for the paper's."""
    return int(dataset.attrs.get("stand_in", 0)) == 1


def _weighed(probe: Probe, datasets: Mapping[str, xr.Dataset]) -> tuple[dict[str, Any], bool]:
    """Outcome of a check without its wrong versions, and whether its evidence is noisy."""
    for artifact in probe.artifacts:
        if is_stand_in(datasets[artifact]):
            reason = str(datasets[artifact].attrs.get("stand_in_reason", "stand-in data"))
            words = {"outcome": "untested", "reason": reason, "expected": describe(probe.check)}
            return words, False
    check, expected_error = _resolved(probe.check, datasets)
    rejected = rejected_values(probe, check)
    observation = observe(probe.evidence, check, datasets[probe.evidence.artifact])
    if isinstance(check, Close) and isinstance(check.expected, tuple):
        observation = observation.flattened()
    values, error, inner = observation.values, observation.standard_error, _inner(check)
    is_noisy = error is not None or expected_error is not None
    own, other = (0.0 if each is None else each for each in (error, expected_error))
    noise = np.broadcast_to(np.hypot(own, other), values.shape)
    missing = np.flatnonzero(np.isnan(values))
    if missing.size:
        place = observation.labels[int(missing[0])] or probe.evidence.variable
        more = f" and {missing.size - 1} more" if missing.size > 1 else ""
        reason = f"the evidence is not a number at {place}{more}"
        assessed: dict[str, Any] = {"outcome": "inconclusive", "reason": reason}
    elif isinstance(inner, Close) and not is_noisy and inner.absolute is inner.relative is None:
        reason = "the tolerance counts standard errors and the evidence has none"
        assessed = {"outcome": "inconclusive", "reason": reason}
    else:
        assessed = _assessed(check, observation, noise, rejected, probe.evidence)
    allowed = region(check, values, noise) or (None, None)
    return assessed | {
        "expected": describe(check),
        "meaning": observation.meaning,
        "observed": _plain(values),
        "standard_error": _plain(error),
        "labels": observation.labels if values.size > 1 else (),
        "low": _plain(allowed[0]),
        "high": _plain(allowed[1]),
        "z": largest_z(check, values, noise),
        "trials": observation.trials,
    }, is_noisy


def _resolved(check: Check, datasets: Mapping[str, xr.Dataset]) -> tuple[Check, Floats | None]:
    """Check with its bounds read, and the standard error of the expected value."""
    error = None
    bounds: dict[str, Any] = {}
    for key, evidence in references(check).items():
        anything = All(kind="all", of=Above(kind="above", low=-math.inf))
        found = observe(evidence, anything, datasets[evidence.artifact]).flattened()
        error = found.standard_error
        if found.values.size == 1:
            bounds[key] = float(found.values[0])
            error = None if error is None else error.reshape(())
        elif key == "expected":
            bounds[key] = tuple(found.values.tolist())
        else:
            raise ValueError(
                f"{key} = {evidence.artifact}.{evidence.variable}: expected one number,"
                f" found {found.values.size}"
            )
    if not bounds:
        return check, None
    inner = _inner(check)
    # Validated anew: a list may stand where the check takes one number.
    inner = type(inner).model_validate(inner.model_dump() | bounds)
    return (All(kind="all", of=inner) if isinstance(check, All) else inner), error


def _assessed(
    check: Check, seen: Observation, noise: Floats, rejected: Sequence[Any], evidence: Evidence
) -> dict[str, Any]:
    """Outcome of an observation, the reason, its margin, and the trials that would decide."""

    def hidden(shrink: float) -> list[Any]:
        return [value for value in rejected if not refuses(check, value, shrink * noise)]

    def decided(shrink: float) -> bool:
        decision = assess(check, seen.values, shrink * noise).decision
        return decision == "refuted" or (decision == "passed" and not hidden(shrink))

    try:
        found = assess(check, seen.values, noise)
    except ValueError as error:
        raise ValueError(f"{evidence.artifact}.{evidence.variable}: {error}") from None
    place = seen.place(check, found.index)
    at = f" {'' if place.startswith('from ') else 'at '}{place}" if place else ""
    sigmas = ""
    if 0 < found.standard_error < math.inf:
        sigmas = f" ({float(f'{abs(found.margin) / found.standard_error:.2g}'):g} s.e.)"
    outcome, reason, needed = "inconclusive", "", None
    if found.decision == "refuted":
        outcome = "failed"
        excess = f"out of bounds by {number(-found.margin, 3)}{sigmas}"
        reason = (excess if found.margin else "no strict step") + at
    elif found.decision == "undecided":
        reason = f"the noise straddles the bound{sigmas}{at}"
    elif unrefused := hidden(1.0):
        shown = series(np.asarray(unrefused[0]).ravel().tolist())
        reason = f"the noise is too large to refuse {shown}"
    else:
        outcome = "passed"
    if outcome == "inconclusive":
        needed = trials_to_decide(decided, seen.trials or 1)
        if seen.trials is None:
            advice = "no number" if needed is None else f"about {needed} times the number"
            reason, needed = f"{reason}; {advice} of trials would decide", None
        else:
            advice = "no number of" if needed is None else f"{needed}"
            reason = f"{reason}; {advice} trials would decide"
    return {
        "outcome": outcome,
        "reason": reason,
        "margin": found.margin,
        "margin_standard_error": found.standard_error,
        "at": place or None,
        "rejected": tuple(_plain(np.asarray(value)) for value in rejected),
        "trials_needed": needed,
    }


def _plain(values: Any) -> Shown:
    if values is None:
        return None
    found = np.asarray(values, dtype=np.float64)
    return float(found) if found.ndim == 0 else tuple(found.ravel().tolist())


def trials_to_decide(decided: Callable[[float], bool], trials: int) -> int | None:
    r"""Smallest number of trials at which an unchanged observation would be decided.

    The standard error s of T trials is :math:`s \sqrt{T / T'}` at T'. For one bound at distance m
    the answer is :math:`T' = \lceil T (2 s / |m|)^2 \rceil`.

    `decided` is true of a factor in (0, 1] if all comparisons are decided with standard errors
    times this factor. None if no practicable number decides: the observation lies on a bound.
    """
    low, high = trials, trials
    for _ in range(MOST_DOUBLINGS):
        low, high = high, 2 * high
        if decided(math.sqrt(trials / high)):
            break
    else:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if decided(math.sqrt(trials / middle)) else (middle, high)
    return high


# Words

Values = float | Sequence[float] | None


def number(value: float, digits: int = 5) -> str:
    """A number in at most `digits` significant digits."""
    return f"{value:.{digits}g}"


def series(values: Values) -> str:
    """A number, a short list, or the range of a long one."""
    if values is None:
        return ""
    if isinstance(values, int | float):
        return number(values)
    if len(values) <= SHORT:
        return ", ".join(number(value) for value in values)
    known = [value for value in values if not math.isnan(value)]
    missing = len(values) - len(known)
    span = f" from {number(min(known))} to {number(max(known))}" if known else ""
    return f"{len(values)} values{span}" + (f", {missing} of them not a number" if missing else "")


def describe(check: Check) -> str:
    """Requirement of a check, in words."""
    match check:
        case Close():
            tolerances = (
                number(check.absolute) if check.absolute is not None else "",
                f"{number(100 * check.relative)}%" if check.relative is not None else "",
                f"{number(check.sigmas)} s.e." if check.sigmas is not None else "",
            )
            given = [text for text in tolerances if text]
            size = given[0] if len(given) == 1 else f"max({', '.join(given)})"
            return f"{_bound(check.expected)} ± {size}"
        case Between():
            return f"between {_bound(check.low)} and {_bound(check.high)}"
        case Below():
            return f"at most {_bound(check.high)}"
        case Above():
            return f"at least {_bound(check.low)}"
        case Monotone():
            words = ("strictly " if check.strict else "") + check.direction
        case Ordered():
            sign = " < " if check.strict else " ≤ "
            words = f"{check.dimension}: {sign.join(map(str, check.labels))}"
        case All():
            return f"all {describe(check.of)}"
    return words + (f" (slack {number(check.slack)})" if check.slack else "")


def selection(labels: Mapping[str, object]) -> str:
    """Labels of a selection, as `coordinate=label`."""
    return ", ".join(
        f"{name}={'|'.join(map(str, label)) if isinstance(label, tuple) else label}"
        for name, label in labels.items()
    )


def _bound(bound: float | tuple[float, ...] | Evidence) -> str:
    if isinstance(bound, Evidence):
        at = f" at {selection(bound.select)}" if bound.select else ""
        return f"{bound.artifact}.{bound.variable}{at}"
    return series(bound)
