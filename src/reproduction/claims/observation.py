"""Read a claim's evidence from a Dataset: the values, their standard error and their labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privreg.validation import expected_choice
from reproduction.claims.checks import Check, Monotone, Ordered, is_scalar
from reproduction.claims.evidence import Evidence, Label
from reproduction.engine.parameters import choose

if TYPE_CHECKING:
    import xarray as xr

LABEL_TOLERANCE = 1e-9
SHOWN_LABELS = 8
ERROR_SUFFIX = "_standard_error"


@dataclass(frozen=True)
class Observation:
    """What the evidence says.

    Attributes
    ----------
    values : ndarray, shape (...)
        The selected values.
    standard_error : ndarray, shape (...), or None
        Of each value, if the variable names one.
    labels : tuple of str
        Where each value is, in C order.
    trials : int or None
        Independent repetitions behind the standard error, if the Dataset says.
    """

    values: NDArray[np.float64]
    standard_error: NDArray[np.float64] | None
    labels: tuple[str, ...]
    trials: int | None

    def place(self, check: Check, index: int) -> str:
        """Where a check's comparison of this index is; empty for a single number."""
        if isinstance(check, Monotone | Ordered):
            return f"from {self.labels[index]} to {self.labels[index + 1]}"
        return self.labels[index]

    def flattened(self) -> Observation:
        """The same values as a list, in C order."""
        error = self.standard_error
        return replace(
            self,
            values=self.values.ravel(),
            standard_error=None if error is None else error.ravel(),
        )


def observe(evidence: Evidence, check: Check, dataset: xr.Dataset) -> Observation:
    """Select the evidence of a check.

    Parameters
    ----------
    evidence : Evidence
        Variable and labels. A label matches a coordinate's number to 1e-9 relative; several
        coordinates may share a dimension.
    check : Check
        `ordered` adds its own labels to the selection.
    dataset : xarray.Dataset
        The artifact.

    Raises
    ------
    ValueError
        One line: no such variable, coordinate or label, with the valid ones.
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
    if is_scalar(check) and chosen.size == 1:
        chosen = chosen.squeeze()
    errors = _standard_error(dataset, variable, selection, where)
    return Observation(
        values=chosen.values.astype(np.float64),
        standard_error=None
        if errors is None
        else _aligned(errors, chosen).values.astype(np.float64),
        labels=_labels(chosen),
        trials=_trials(dataset, variable),
    )


def positions(values: NDArray[Any], wanted: Any, where: str) -> list[int]:
    """Where a coordinate has the label, or the labels, that are wanted.

    Raises
    ------
    ValueError
        One line: a label is not there, with those that are.
    """
    labels = wanted if isinstance(wanted, tuple) else (wanted,)
    return [index for label in labels for index in _matches(values, label, where)]


def _standard_error(
    dataset: xr.Dataset, variable: xr.DataArray, selection: Mapping[str, Any], where: str
) -> xr.DataArray | None:
    listed = variable.attrs.get("ancillary_variables") or variable.encoding.get(
        "ancillary_variables", ""
    )
    for name in str(listed).split():
        if name.endswith(ERROR_SUFFIX):
            if name not in dataset:
                raise ValueError(f"{where}: no ancillary variable {name!r} in the artifact")
            return _select(dataset[name], selection, where)
    return None


def _aligned(errors: xr.DataArray, values: xr.DataArray) -> xr.DataArray:
    return errors.squeeze().broadcast_like(values).transpose(*values.dims)


def _trials(dataset: xr.Dataset, variable: xr.DataArray) -> int | None:
    found = variable.attrs.get("trials", dataset.attrs.get("trials", dataset.sizes.get("trial")))
    return None if found is None or int(found) < 1 else int(found)


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
            matches = positions(
                array.coords[name].values, selection[name], f"{where}.select.{name}"
            )
            kept = matches if kept is None else [index for index in kept if index in set(matches)]
        if not kept:
            wanted = ", ".join(f"{name}={selection[name]}" for name in names)
            raise ValueError(f"{where}.select: no element has {wanted} at once")
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
    try:
        target = float(label)  # YAML reads 1e-3 as text
    except ValueError:
        raise ValueError(f"{where} = {label!r}: expected {_listed(numbers)}") from None
    found = np.flatnonzero(
        (numbers == target) | (np.abs(numbers - target) <= LABEL_TOLERANCE * abs(target))
    ).tolist()
    if not found:
        closest = numbers[np.argmin(np.abs(numbers - target))]
        raise ValueError(
            f"{where} = {label!r}: expected {_listed(numbers)}; the nearest is {closest:.12g}"
        )
    return found


def _listed(numbers: NDArray[np.float64]) -> str:
    texts = [f"{value:.6g}" for value in numbers]
    if len(texts) > SHOWN_LABELS:
        texts = [*texts[: SHOWN_LABELS - 2], "…", texts[-1]]
    return f"one of {', '.join(texts)}"


def _labels(array: xr.DataArray) -> tuple[str, ...]:
    axes = [_axis_labels(array, str(dimension)) for dimension in array.dims]
    return tuple(
        ", ".join(axis[position] for axis, position in zip(axes, index, strict=True))
        for index in np.ndindex(array.shape)
    )


def _axis_labels(array: xr.DataArray, dimension: str) -> list[str]:
    along = [name for name, found in array.coords.items() if found.dims == (dimension,)]
    names = [dimension] if dimension in along else [str(name) for name in along]
    columns = [_texts(array.coords[name].values, name) for name in names]
    if not columns:
        return [f"{dimension}[{index}]" for index in range(array.sizes[dimension])]
    return [", ".join(row) for row in zip(*columns, strict=True)]


def _texts(values: NDArray[Any], name: str) -> list[str]:
    if values.dtype.kind == "f":
        return [f"{name}={value:.6g}" for value in values]
    return [f"{name}={value}" for value in values]
