"""Verdicts: the judgement of an entry, and all verdicts as a table."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, SerializerFunctionWrapHandler, TypeAdapter, model_serializer

from privreg.claims.decision import Finding, find, is_stand_in
from privreg.claims.entries import Entry, VerdictName
from privreg.claims.wording import describe, selection, series
from privreg.experiment.parameters import Strict

if TYPE_CHECKING:
    import xarray as xr

Scale = Literal["paper", "quick"]
Numbers = float | tuple[float, ...] | None
COLUMNS = (
    "paper", "id", "where", "statement", "verdict", "expect", "as_expected", "observed",
    "standard_error", "expected", "margin", "at", "trials", "trials_needed", "reason", "note",
    "pair", "stand_in", "scale", "artifact", "variable", "select", "digest", "command",
)  # fmt: skip


class Verdict(Strict):
    """The judgement of one entry, with all that is needed to check it."""

    model_config = ConfigDict(ser_json_inf_nan="strings")

    paper: str
    id: str
    where: str
    statement: str
    note: str | None
    pair: str | None
    figure: str | None
    verdict: VerdictName
    expect: VerdictName
    as_expected: bool
    reason: str
    observed: Numbers
    standard_error: Numbers
    expected: str
    margin: float | None
    at: str | None
    trials: int | None
    trials_needed: int | None
    stand_in: bool
    artifact: str
    variable: str
    select: str
    digest: str
    command: str
    scale: Scale

    @model_serializer(mode="wrap")
    def _sorted_keys(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return dict(sorted(handler(self).items()))


def judge(
    entry: Entry,
    dataset: xr.Dataset,
    *,
    paper: str,
    digest: str,
    command: str,
    scale: Scale = "paper",
) -> Verdict:
    """Judge an entry by its evidence.

    Parameters
    ----------
    entry : Entry
        The claim.
    dataset : xarray.Dataset
        The artifact that the entry names. The attribute `stand_in` = 1 says that bundled data
        stands in for the paper's: the claim is then untested, with `stand_in_reason`.
    paper : str
        Citation key.
    digest : str
        SHA-256 of the artifact's file.
    command : str
        Rebuilds the verdict.
    scale : {"paper", "quick"}
        Scale of the run that the evidence comes from.

    Returns
    -------
    Verdict
        `inconclusive` if the noise straddles a bound, if it hides an observation that the check
        must refuse, or if the evidence is not a number.

    Raises
    ------
    ValueError
        One line: the artifact has no such variable or label, or of a shape the check does not take.
        At the reduced scale the claim is untested instead.
    """
    try:
        finding = find(entry, dataset)
    except ValueError as error:
        if scale == "paper":
            raise
        # A reduced scale may leave out the very setting that a claim is about.
        finding = Finding("untested", f"left out of the reduced scale: {error}")
    check = entry.check
    observation, outcome = finding.observation, finding.outcome
    errors = None if observation is None else observation.standard_error
    return Verdict(
        paper=paper,
        id=entry.id,
        where=entry.where,
        statement=entry.statement,
        note=entry.note,
        pair=entry.pair,
        figure=entry.figure,
        verdict=finding.verdict,
        expect=entry.expect,
        as_expected=finding.verdict == entry.expect,
        reason=finding.reason,
        observed=None if observation is None else _plain(observation.values),
        standard_error=None if errors is None else _plain(errors),
        expected=describe(check),
        margin=None if outcome is None else outcome.margin,
        at=None
        if observation is None or outcome is None
        else observation.place(check, outcome.index) or None,
        trials=None if observation is None else observation.trials,
        trials_needed=finding.trials_needed,
        stand_in=is_stand_in(dataset),
        artifact=entry.evidence.artifact,
        variable=entry.evidence.variable,
        select=selection(entry.evidence.select),
        digest=digest,
        command=command,
        scale=scale,
    )


def collect(verdicts: Sequence[Verdict]) -> list[dict[str, str]]:
    """One row of text a verdict, for the table."""
    return [{column: _cell(getattr(verdict, column)) for column in COLUMNS} for verdict in verdicts]


def to_csv(verdicts: Sequence[Verdict]) -> str:
    """The table of verdicts as CSV."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(collect(verdicts))
    return stream.getvalue()


def to_json(verdicts: Sequence[Verdict]) -> str:
    """The verdicts as JSON, keys sorted; infinity and NaN are strings that `from_json` reads."""
    plain = [json.loads(verdict.model_dump_json()) for verdict in verdicts]
    return json.dumps(plain, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)


def from_json(text: str) -> list[Verdict]:
    """The inverse of `to_json`."""
    return TypeAdapter(list[Verdict]).validate_json(text)


def _plain(values: NDArray[np.float64]) -> float | tuple[float, ...]:
    return float(values) if values.ndim == 0 else tuple(values.ravel().tolist())


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float | tuple):
        return series(value)
    return str(value)
