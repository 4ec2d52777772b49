"""What can be said of a check before its evidence is there, from the artifact's known structure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod

import numpy as np

from reproduction.claims import checks
from reproduction.claims.entries import Probe
from reproduction.claims.evidence import Evidence, Label
from reproduction.claims.observation import positions
from reproduction.engine.parameters import choose

Labels = tuple[float | str, ...]


@dataclass(frozen=True)
class Coordinate:
    """A coordinate along one dimension; its labels are None where they are not known."""

    dimension: str
    labels: Labels | None = None


@dataclass(frozen=True)
class Known:
    """What is known of an artifact that is not there yet.

    Attributes
    ----------
    variables : mapping
        Dimensions of each variable.
    coordinates : mapping
        Those that a selection may name.
    sizes : mapping
        Length of each dimension, where it is known.
    """

    variables: Mapping[str, tuple[str, ...]]
    coordinates: Mapping[str, Coordinate] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)


def require_possible(probe: Probe, known: Mapping[str, Known]) -> None:
    """Refuse a check that could not be judged, whatever its evidence turns out to be.

    Parameters
    ----------
    probe : Probe
        The check.
    known : mapping
        By artifact; of one that is left out nothing is known, and nothing is refused.

    Raises
    ------
    ValueError
        One line: no such variable, coordinate or label, with the nearest valid one, or a shape
        that the check does not take.
    """
    for falsifier in probe.falsifiers:
        require_possible(falsifier, known)
    check = probe.check
    read = {"evidence": probe.evidence}
    read |= {f"check.{key}": bound for key, bound in checks.references(check).items()}
    for place, evidence in read.items():
        about = known.get(evidence.artifact)
        if about is None:
            continue
        selected: dict[str, Label | tuple[Label, ...]] = dict(evidence.select)
        if place == "evidence" and isinstance(check, checks.Ordered):
            selected[check.dimension] = check.labels
        shape = _shape(evidence, selected, about, place)
        # What is expected may turn out to be a list as long as the evidence.
        if place == "evidence" and shape is not None and len(read) == 1:
            _require_shape(check, shape, f"{evidence.artifact}.{evidence.variable}")


def _shape(
    evidence: Evidence, selected: Mapping[str, Label | tuple[Label, ...]], known: Known, place: str
) -> tuple[int, ...] | None:
    """Shape of what is selected; None where the labels or sizes are not known."""
    where = f"{place}.variable"
    choose(evidence.variable, known.variables, where)
    dimensions = known.variables[evidence.variable]
    usable = {
        name: about for name, about in known.coordinates.items() if about.dimension in dimensions
    }
    kept: dict[str, set[int]] = {}
    listed: set[str] = set()
    complete = True
    for name, wanted in selected.items():
        choose(name, usable, f"{place}.select: a key")
        about = usable[name]
        if about.labels is None:
            complete = False
            continue
        found = set(positions(np.asarray(about.labels), wanted, f"{place}.select.{name}"))
        kept[about.dimension] = kept.get(about.dimension, found) & found
        if isinstance(wanted, tuple):
            listed.add(about.dimension)
        if not kept[about.dimension]:
            raise ValueError(f"{place}.select: no element has all of these labels at once")
    if not complete or any(each not in known.sizes for each in dimensions):
        return None
    lengths = {each: len(kept.get(each, range(known.sizes[each]))) for each in dimensions}
    return tuple(
        length
        for each, length in lengths.items()
        if not (each in kept and length == 1 and each not in listed)
    )


def _require_shape(check: checks.Check, shape: tuple[int, ...], where: str) -> None:
    if checks.is_scalar(check) and prod(shape) == 1:
        return
    if isinstance(check, checks.Close) and isinstance(check.expected, tuple):
        shape = (prod(shape),)
    wanted = checks.misshapen(check, shape)
    if wanted:
        found = f"an array of shape {shape}" if shape else "one number"
        raise ValueError(f"check {check.kind!r} takes {wanted}, got {found} from {where}")
