"""A paper's ledger: its statements, our cross-checks and findings, one file a topic."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from graphlib import CycleError, TopologicalSorter
from itertools import chain, product
from math import prod
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import Field, model_validator

from reproduction.engine.checks import BOUNDS, Probe, Text
from reproduction.engine.parameters import ConfigError, Name, Strict, choose, validate
from reproduction.engine.quantities import Flag
from reproduction.engine.recipe import entries
from reproduction.engine.registry import Recipe
from reproduction.engine.yaml_files import read_mapping

StatementKind = Literal["printed number", "theorem", "proof step", "figure", "prose"]
StatementVerdict = Literal[
    "reproduced",
    "holds as corrected",
    "proof gap",
    "contradicted",
    "depends on our choice",
    "inconclusive",
    "untested",
]
CrossCheckVerdict = Literal["passed", "failed", "inconclusive", "untested"]
Severity = Literal["conclusion", "hypothesis", "constant", "typo"]
Change = Literal["guarantee", "rate or condition", "number", "nothing"]
# Verdicts of statements that hold with a correction, of a misprint or of a step of a proof, and of
# all that are refuted as printed, the gravest first.
CORRECTED = ("holds as corrected", "proof gap")
SLIPS = ("contradicted", *reversed(CORRECTED))
Identifier = Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]
Texts = tuple[Text, ...]


class Run(Strict):
    """The checks at one value of a choice of ours."""

    label: Text = Field(description="The choice, as it is made here.")
    checks: Annotated[tuple[Probe, ...], Field(min_length=1)]


class Choice(Strict):
    """Choice that the paper leaves open and that decides the verdict; run at several values."""

    choice: Text = Field(description="What is left open.")
    runs: Annotated[tuple[Run, ...], Field(min_length=2)]


class Correction(Strict):
    """Correction of a statement that is refuted as printed and holds as corrected."""

    holds_with: Text = Field(description="The correction, to be read after 'holds with'.")
    slip: Literal["misprint", "proof"] = Field(
        "misprint", description="`proof` if the correction replaces a wrong step of a proof."
    )
    checks: Annotated[tuple[Probe, ...], Field(min_length=1)]


class _Entry(Strict):
    """Common fields of statements and cross-checks."""

    id: Identifier
    checks: tuple[Probe, ...] = ()
    ours: Texts = Field((), description="What the paper leaves open and we chose.")
    requires: tuple[Identifier, ...] = Field((), description="Entries that this one rests on.")
    figure: Name | None = Field(None, description="The figure or table to look at.")
    note: Text | None = Field(None, description="Further facts for a reader; how it is measured.")

    @property
    def runs(self) -> tuple[Run, ...]:
        """The checks, one run for each value of our choice; empty if nothing can be checked."""
        return (Run(label="as stated", checks=self.checks),) if self.checks else ()

    @property
    def probes(self) -> Iterator[Probe]:
        """The checks of all runs."""
        return (probe for run in self.runs for probe in run.checks)


class Statement(_Entry):
    """Statement of a paper in our words, no stronger than in print, with its place in the paper."""

    kind: StatementKind
    where: Text = Field(description="Section, theorem, equation or panel.")
    statement: Text
    printed: Texts = Field((), description="Numbers as the paper prints them.")
    depends_on_choice: Choice | None = None
    corrected: Correction | None = None
    finding: Identifier | None = Field(None, description="The slip of the paper that it shows.")
    expect: StatementVerdict = "reproduced"

    @model_validator(mode="before")
    @classmethod
    def _expects_what_follows(cls, raw: Any) -> Any:
        if not isinstance(raw, Mapping) or "expect" in raw:
            return raw
        correction, follows = raw.get("corrected"), "reproduced"
        if isinstance(correction, Mapping):
            follows = CORRECTED[correction.get("slip") == "proof"]
        elif raw.get("depends_on_choice"):
            follows = "depends on our choice"
        elif raw.get("finding"):
            follows = "contradicted"
        return {**raw, "expect": follows}

    @property
    def runs(self) -> tuple[Run, ...]:
        """The checks: one run for each value of our choice, or as printed and as corrected."""
        if self.depends_on_choice:
            return self.depends_on_choice.runs
        if self.corrected:
            label = f"with {self.corrected.holds_with}"
            corrected = Run(label=label, checks=self.corrected.checks)
            return (Run(label="as printed", checks=self.checks), corrected)
        return super().runs

    @property
    def slip(self) -> str:
        """Key of the statement's slip: the finding's id, or the statement's own id."""
        return self.finding or self.id

    @model_validator(mode="after")
    def _says_why(self) -> Self:
        given = bool(self.checks) + (self.depends_on_choice is not None)
        if given > 1 or (given == 0 and self.expect != "untested"):
            raise ValueError("one of checks and depends_on_choice must be given")
        if (self.expect in SLIPS or self.corrected) and self.finding is None:
            raise ValueError("finding must be given, the slip that a refuted statement shows")
        if self.corrected and self.depends_on_choice:
            raise ValueError("corrected must be given with checks, got depends_on_choice")
        if self.expect in CORRECTED and self.corrected is None:
            raise ValueError(f"corrected must be given for expect = {self.expect!r}")
        if self.expect == "depends on our choice" and self.depends_on_choice is None:
            raise ValueError("depends_on_choice must be given for expect = 'depends on our choice'")
        if self.expect in ("inconclusive", "untested") and self.note is None:
            raise ValueError(f"note must say why, for expect = {self.expect!r}")
        if self.kind == "printed number" and not self.printed:
            raise ValueError("printed must be given for kind = 'printed number'")
        return self


class CrossCheck(_Entry):
    """Check for or against no paper, such as two routes to one number, or a self-test."""

    compares: Text = Field(description="What must agree with what.")
    where: Text | None = Field(None, description="The place in the paper that it is near.")
    expect: CrossCheckVerdict = "passed"

    @model_validator(mode="after")
    def _is_checked(self) -> Self:
        if not self.checks:
            raise ValueError("checks must hold at least one")
        if self.expect != "passed" and self.note is None:
            raise ValueError(f"note must say why, for expect = {self.expect!r}")
        return self


Entry = Statement | CrossCheck


class Foremost(Strict):
    """A finding that heads the results, with the paper's own words."""

    rank: Annotated[int, Field(ge=1, le=10)]
    quote: Text = Field(description="From the paper's text, letter by letter.")
    figure: Name | None = Field(None, description="The figure or table to look at.")


class Finding(Strict):
    """One slip of a paper, however many statements show it."""

    id: Identifier
    severity: Severity
    changes: Change = Field(description="What it changes for a user of the paper.")
    places: Annotated[Texts, Field(min_length=1)]
    printed: Text = Field(description="What the paper says.")
    holds: Text = Field(description="What holds instead.")
    how_we_know: Text = Field(description="The derivation in a few lines, and the check.")
    shown_by: tuple[Identifier, ...] = Field(
        (), description="Entries that show the slip, besides the statements that name it."
    )
    by_reading: Flag = Field(False, description="Seen by reading alone: no entry would fail.")
    foremost: Foremost | None = None
    downstream: Text = Field(
        description="What it changes in the paper, or that it changes nothing."
    )


class Topic(Strict):
    """Entries about one theorem or figure."""

    name: Identifier
    topic: Text = Field(description="Heading.")
    about: Text | None = Field(None, description="What the entries share, said once.")
    statements: tuple[Statement, ...] = ()
    cross_checks: tuple[CrossCheck, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Judged entries, in order."""
        return (*self.statements, *self.cross_checks)


@dataclass(frozen=True)
class Ledger:
    """A paper's topics, in the order of their files."""

    paper: str
    topics: tuple[Topic, ...]

    @cached_property
    def entries(self) -> dict[str, Entry]:
        """Statements and cross-checks by id."""
        return {entry.id: entry for topic in self.topics for entry in topic.entries}

    @cached_property
    def findings(self) -> dict[str, Finding]:
        """Findings by id."""
        return {finding.id: finding for topic in self.topics for finding in topic.findings}

    def shown_by(self, finding: str) -> tuple[str, ...]:
        """Entries that show a finding: statements that name it, then entries that it names."""
        naming = [
            entry.id
            for entry in self.entries.values()
            if isinstance(entry, Statement) and entry.finding == finding
        ]
        return tuple(dict.fromkeys([*naming, *self.findings[finding].shown_by]))

    def reads(self, only: Collection[str] | None = None) -> dict[str, set[str]]:
        """Variables that the checks read, by artifact; only those of entries `only`, if given."""
        found: dict[str, set[str]] = {}
        for name, entry in self.entries.items():
            for probe in entry.probes if only is None or name in only else ():
                for evidence in probe.reads:
                    found.setdefault(evidence.artifact, set()).add(evidence.variable)
        return found

    def artifacts(self, only: Collection[str] | None = None) -> tuple[str, ...]:
        """Artifacts that the checks read, sorted."""
        return tuple(sorted(self.reads(only)))

    def reading(self, artifacts: Collection[str]) -> list[str]:
        """Ids of the entries that read one of these artifacts."""
        return [name for name in self.entries if {*self.artifacts((name,))} & {*artifacts}]


# Entries that an experiment declares beside its functions, by the list that they belong to.
Declared = Callable[[str], Mapping[str, Sequence[Any]]]
KEYS = ("topic", "about", "shared", "statements", "cross_checks", "findings", "identities")
# What is ours is said by each entry: shared, it would be false of an entry that is added.
SHARED = ("kind", "where", "figure", "requires", "evidence")
LISTS: dict[str, type[Strict]] = {
    "statements": Statement,
    "cross_checks": CrossCheck,
    "findings": Finding,
}
# What an entry of one check may say without a list.
PROBE = ("evidence", "check", "resolves", "rejects", "wrong")


def load_ledger(folder: str | Path, paper: str, declared: Declared | None = None) -> Ledger:
    """Read and check a paper's ledger, one YAML file a topic, in the order of their names.

    `declared` gives the entries of an experiment that a topic names as its `identities`.
    """
    files = topic_files(folder)
    if not files:
        raise ConfigError(f"{folder} must hold the ledger of {paper}, got no *.yaml in it")
    topics = tuple(
        parse_topic(read_mapping(path), path.stem, f"{paper}.claims.{path.stem}", declared)
        for path in files
    )
    ledger = Ledger(paper, topics)
    _check_names(ledger)
    return ledger


def read_ledger(folder: str | Path, paper: str) -> Ledger:
    """A paper's ledger, with the entries that its identities declare; see `load_ledger`."""
    return load_ledger(folder, paper, partial(declared_entries, paper))


def declared_entries(paper: str, experiment: str) -> dict[str, list[Any]]:
    """Entries that the theory of an experiment declares beside its functions, as in a ledger."""
    theory = getattr(Recipe(paper, experiment).module, "theory", None)
    found = entries(getattr(theory, "blocks", ()), f"theory/{experiment}")
    if not any(found.values()):
        raise ConfigError(f"{paper}.experiments.{experiment} must declare identities, got none")
    return found


def topic_files(folder: str | Path) -> list[Path]:
    """Files of a ledger in order."""
    return sorted(Path(folder).glob("*.yaml"))


def parse_topic(raw: Any, name: str, where: str, declared: Declared | None = None) -> Topic:
    """Check one topic, and pass its shared fields on to its entries."""
    if not isinstance(raw, Mapping):
        raise ConfigError(f"{where} must be a mapping with `topic`, got {raw!r:.40}")
    for key in raw:
        choose(key, KEYS, f"{where}: a key")
    shared = _given(raw, "shared", dict, where)
    for key in shared:
        choose(key, SHARED, f"{where}.shared: a key")
    experiments = _given(raw, "identities", list, where)
    values: dict[str, Any] = {"name": name}
    values |= {key: raw[key] for key in ("topic", "about") if key in raw}
    for key, model in LISTS.items():
        listed = list(_given(raw, key, list, where))
        for experiment in experiments:
            if declared is None:
                raise ConfigError(f"{where}.identities must be a list of the paper's experiments")
            listed += declared(experiment).get(key, ())
        made = []
        for index, entry in enumerate(listed):
            at = f"{where}.{key}.{index}"
            if isinstance(entry, Mapping):
                at = f"{where}.{entry['id']}" if "id" in entry else at
                entry = entry if model is Finding else _whole(entry, shared, at, model)
            made.append(validate(model, entry, at))
        values[key] = made
    if not any(values[key] for key in LISTS):
        raise ConfigError(f"{where}: one of statements, cross_checks and findings must be given")
    return validate(Topic, values, where)


def _given(raw: Mapping[str, Any], key: str, kind: type, where: str) -> Any:
    found = kind() if raw.get(key) is None else raw[key]
    if not isinstance(found, kind):
        words = "list" if kind is list else "mapping"
        raise ConfigError(f"{where}.{key} must be a {words}, got {found!r:.40}")
    return found


def _whole(
    entry: Mapping[str, Any], shared: Mapping[str, Any], where: str, model: type[Strict]
) -> dict[str, Any]:
    """Entry with its topic's shared fields and a list of checks written out."""
    merged = {key: shared[key] for key in shared if key in model.model_fields} | dict(entry)
    both = (_given(each, "requires", list, where) for each in (shared, entry))
    merged["requires"] = [*chain.from_iterable(both)]
    if "checks" not in entry and not {*PROBE}.isdisjoint(entry):
        merged["checks"] = [{key: merged.pop(key) for key in PROBE if key in merged}]
    evidence = {"variable": str(entry.get("id")).replace("-", "_")}
    evidence |= _given(shared, "evidence", dict, f"{where}.shared")
    merged["checks"] = _written_out(merged, evidence, where)
    choice = _given(entry, "depends_on_choice", dict, where)
    if choice:
        runs = [
            {**run, "checks": _written_out(run, evidence, where)}
            if isinstance(run, Mapping)
            else run
            for run in _given(choice, "runs", list, where)
        ]
        merged["depends_on_choice"] = {**choice, "runs": runs}
    if correction := _given(entry, "corrected", dict, where):
        differs = {key: each for key, each in correction.items() if key in PROBE}
        rest = {key: each for key, each in correction.items() if key not in PROBE}
        checks = [_differing(probe, differs) for probe in merged["checks"] if differs]
        checks += _written_out(correction, evidence, where)
        merged["corrected"] = {**rest, "checks": checks}
    return merged


def _differing(probe: Mapping[str, Any], differs: Mapping[str, Any]) -> dict[str, Any]:
    """Corrected check, from the printed one; rejected values are not passed on."""
    evidence = {**probe["evidence"], **differs.get("evidence", {})}
    return {"label": probe.get("label"), "check": probe["check"], **differs, "evidence": evidence}


def _written_out(holder: Mapping[str, Any], shared: Mapping[str, Any], where: str) -> list[Any]:
    return [
        each
        for probe in _given(holder, "checks", list, where)
        for each in (_over(probe, shared, where) if isinstance(probe, Mapping) else [probe])
    ]


def _over(probe: Mapping[str, Any], shared: Mapping[str, Any], where: str) -> Iterator[Any]:
    """Checks for each combination of the evidence's `over`, the first key slowest."""
    own = _given(probe, "evidence", dict, where)
    evidence = {**shared, **own}
    over = _given(evidence, "over", dict, f"{where}.evidence")
    # Another artifact has labels of its own.
    same = own.get("artifact", shared.get("artifact")) == shared.get("artifact")
    kept = _given(shared, "select", dict, where) if same and "artifact" not in over else {}
    select = {**kept, **_given(own, "select", dict, f"{where}.evidence")}
    evidence = {key: each for key, each in evidence.items() if key not in ("over", "select")}
    if not over:
        yield {**probe, "evidence": {**evidence, "select": select}}
        return
    for key in over:
        _given(over, key, list, f"{where}.evidence.over")
    count = prod(map(len, over.values()))
    for index, labels in enumerate(product(*over.values())):
        at = dict(zip(over, labels, strict=True))
        varied = {key: at.pop(key) for key in ("artifact", "variable") if key in at}
        one = _one_of(probe, index, count, where)
        if not isinstance(probe.get("label"), list):
            said = [*filter(None, [probe.get("label")]), *varied.values()]
            said += [f"{key} = {label}" for key, label in at.items()]
            one["label"] = ", ".join(map(str, said))
        yield {**one, "evidence": {**evidence, **varied, "select": {**select, **at}}}


def _one_of(probe: Mapping[str, Any], index: int, count: int, where: str) -> dict[str, Any]:
    """Check of one combination, taken from lists with one value for each."""
    found = dict(probe)
    for key, each in probe.items():
        if key in (*BOUNDS, "resolves", "label") and isinstance(each, list):
            if len(each) != count:
                raise ConfigError(f"{where}.{key} must hold {count}, 1 per check, got {len(each)}")
            found[key] = each[index]
        elif key in ("check", "of") and isinstance(each, Mapping):
            found[key] = _one_of(each, index, count, where)
        elif key == "wrong" and isinstance(each, list):
            found[key] = [
                _one_of(wrong, index, count, where) if isinstance(wrong, Mapping) else wrong
                for wrong in each
            ]
    return found


def _check_names(ledger: Ledger) -> None:
    seen: dict[str, str] = {}
    for topic in ledger.topics:
        at = f"{ledger.paper}.claims.{topic.name}"
        for item in (*topic.entries, *topic.findings):
            if item.id in seen:
                raise ConfigError(
                    f"{at}.{item.id} must be defined once, got it in {seen[item.id]} as well"
                )
            seen[item.id] = topic.name
        for entry in topic.entries:
            for base in entry.requires:
                choose(base, ledger.entries.keys() - {entry.id}, f"{at}.{entry.id}.requires")
            if isinstance(entry, Statement) and entry.finding is not None:
                choose(entry.finding, ledger.findings, f"{at}.{entry.id}.finding")
        for finding in topic.findings:
            for shown in finding.shown_by:
                choose(shown, ledger.entries, f"{at}.{finding.id}.shown_by")
            if not (ledger.shown_by(finding.id) or finding.by_reading):
                raise ConfigError(
                    f"{at}.{finding.id}.shown_by must name an entry that shows it, or by_reading "
                    "must be true; got neither"
                )
    try:
        TopologicalSorter(
            {name: entry.requires for name, entry in ledger.entries.items()}
        ).prepare()
    except CycleError as error:
        circle = " -> ".join(error.args[1])
        raise ConfigError(
            f"{ledger.paper}.claims: requires must not go in a circle, got {circle}"
        ) from None


class Item(Strict):
    """Statement of a paper that no entry judges as stated, according to the entries' `where`."""

    item: Text = Field(description="Theorem 4; Figure 2, panel 3; the abstract's rate.")
    says: Text
    entries: tuple[Identifier, ...] = Field((), description="Entries elsewhere that test it.")
    narrower: Text | None = Field(None, description="How the judged statement is narrower.")
    reason: Text | None = Field(None, description="Why nothing judges it.")

    @model_validator(mode="after")
    def _is_answered(self) -> Self:
        if not (self.entries or self.narrower or self.reason):
            raise ValueError("one of entries, narrower and reason must be given")
        return self


def load_coverage(path: str | Path, ledger: Ledger) -> list[Item]:
    """Read a paper's coverage: statements that no entry's place shows.

    Raises
    ------
    ConfigError
        An item has no answer, occurs twice, or names an entry that the ledger lacks; one line.
    """
    where = f"{ledger.paper}.coverage"
    listed = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    found: dict[str, Item] = {}
    for index, raw in enumerate(listed):
        item = validate(Item, raw, f"{where}.{index}")
        if item.item in found:
            raise ConfigError(f"{where}.{item.item} must be listed once, got it twice")
        for name in item.entries:
            choose(name, ledger.entries, f"{where}.{item.item}.entries")
        found[item.item] = item
    return list(found.values())
