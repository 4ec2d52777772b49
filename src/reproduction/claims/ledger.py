"""Read a paper's ledger: a folder with one file a topic, checked as a whole."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from reproduction.claims.entries import CrossCheck, Finding, Statement, Topic
from reproduction.engine.parameters import ConfigError, choose, explain
from reproduction.engine.yaml_files import read_mapping

Entry = Statement | CrossCheck
# Entries that an experiment declares beside its functions, by the list that they belong to.
Declared = Callable[[str], Mapping[str, list[Any]]]
KEYS = ("topic", "about", "shared", "statements", "cross_checks", "findings", "identities")
SHARED = ("kind", "where", "figure", "ours", "requires", "evidence")
SHARED_KINDS: dict[str, type] = {"ours": list, "requires": list, "evidence": dict}
LISTS: dict[str, tuple[str, ...]] = {
    "statements": SHARED,
    "cross_checks": ("where", "figure", "ours", "requires", "evidence"),
    "findings": (),
}


@dataclass(frozen=True)
class Ledger:
    """A paper's topics, in the order of their files.

    Attributes
    ----------
    paper : str
        Citation key.
    topics : tuple of Topic
    """

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
        """Entries that show a finding: statements that name it, then those that it names."""
        naming = [
            entry.id
            for entry in self.entries.values()
            if isinstance(entry, Statement) and entry.finding == finding
        ]
        return tuple(dict.fromkeys([*naming, *self.findings[finding].shown_by]))


def load_ledger(folder: str | Path, paper: str, declared: Declared | None = None) -> Ledger:
    """Read and check a paper's ledger.

    Parameters
    ----------
    folder : str or Path
        Holds one YAML file a topic; they are read in the order of their names.
    paper : str
        Citation key, for the messages.
    declared : callable, optional
        Gives the entries of an experiment that a topic names as its `identities`.

    Returns
    -------
    Ledger

    Raises
    ------
    ConfigError
        One line: the paper, the file, the entry, the key, what was found and what was expected.
    """
    folder = Path(folder)
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


def topic_files(folder: str | Path) -> list[Path]:
    """Files of a ledger in order."""
    return sorted(Path(folder).glob("*.yaml"))


def parse_topic(raw: Any, name: str, where: str, declared: Declared | None = None) -> Topic:
    """Check one topic; what it shares is passed on to its entries."""
    if not isinstance(raw, Mapping):
        raise ConfigError(f"{where} must be a mapping with `topic`, got {raw!r:.40}")
    for key in raw:
        choose(key, KEYS, f"{where}: a key")
    shared = raw.get("shared") or {}
    if not isinstance(shared, Mapping):
        raise ConfigError(f"{where}.shared must be a mapping, got {shared!r:.40}")
    for key in shared:
        choose(key, SHARED, f"{where}.shared: a key")
    for key, kind in SHARED_KINDS.items():
        if not isinstance(shared.get(key, kind()), kind):
            words = "a list" if kind is list else "a mapping"
            raise ConfigError(f"{where}.shared.{key} must be {words}, got {shared[key]!r:.40}")
    select = (shared.get("evidence") or {}).get("select", {})
    if not isinstance(select, Mapping):
        raise ConfigError(f"{where}.shared.evidence.select must be a mapping, got {select!r:.40}")
    values = {key: value for key, value in raw.items() if key != "shared"} | {"name": name}
    experiments = values.pop("identities", [])
    if not isinstance(experiments, list) or (experiments and declared is None):
        raise ConfigError(
            f"{where}.identities must be a list of the paper's experiments, got {experiments!r:.40}"
        )
    for experiment in experiments:
        for key, entries in (declared(experiment) if declared else {}).items():
            # What is no list is refused below.
            if entries and isinstance(values.get(key) or [], list):
                values[key] = [*(values.get(key) or []), *entries]
    for key, passed_on in LISTS.items():
        if key in values:
            if not isinstance(values[key], list):
                raise ConfigError(f"{where}.{key} must be a list, got {values[key]!r:.40}")
            given = {name: shared[name] for name in passed_on if name in shared}
            values[key] = [_with_shared(entry, given) for entry in values[key]]
    try:
        return Topic.model_validate(values)
    except ValidationError as error:
        raise ConfigError(_by_id(explain(error, where), values, where)) from None


def _with_shared(entry: Any, shared: Mapping[str, Any]) -> Any:
    if not isinstance(entry, Mapping):
        return entry
    merged = {key: value for key, value in shared.items() if key != "evidence"} | dict(entry)
    for key in ("ours", "requires"):
        own = entry.get(key)
        if key in shared and isinstance(own, list):
            merged[key] = [*shared[key], *own]
    evidence = shared.get("evidence")
    if evidence:
        if isinstance(entry.get("checks"), list):
            merged["checks"] = [_with_evidence(check, evidence) for check in entry["checks"]]
        choice = entry.get("depends_on_choice")
        if isinstance(choice, Mapping) and isinstance(choice.get("runs"), list):
            runs = [_run_with_evidence(run, evidence) for run in choice["runs"]]
            merged["depends_on_choice"] = dict(choice) | {"runs": runs}
    return merged


def _run_with_evidence(run: Any, evidence: Mapping[str, Any]) -> Any:
    if not isinstance(run, Mapping) or not isinstance(run.get("checks"), list):
        return run
    return dict(run) | {"checks": [_with_evidence(check, evidence) for check in run["checks"]]}


def _with_evidence(check: Any, shared: Mapping[str, Any]) -> Any:
    if not isinstance(check, Mapping):
        return check
    own = check.get("evidence") or {}
    # What is of the wrong type is left to the types to say, at its place.
    if not isinstance(own, Mapping) or not isinstance(own.get("select") or {}, Mapping):
        return check
    evidence = dict(shared) | dict(own)
    # Another artifact has labels of its own.
    if own.get("artifact", shared.get("artifact")) == shared.get("artifact"):
        select = {**(shared.get("select") or {}), **(own.get("select") or {})}
        evidence |= {"select": select} if select else {}
    elif "select" not in own:
        evidence.pop("select", None)
    return dict(check) | {"evidence": evidence}


def _by_id(message: str, values: Mapping[str, Any], where: str) -> str:
    """The message with an entry's id in place of its position."""
    found = re.match(rf"{re.escape(where)}\.({'|'.join(LISTS)})\.(\d+)", message)
    if not found:
        return message
    entry = values[found[1]][int(found[2])]
    name = entry.get("id", found[2]) if isinstance(entry, Mapping) else found[2]
    return f"{where}.{name}{message[found.end() :]}"


def _check_names(ledger: Ledger) -> None:
    where = f"{ledger.paper}.claims"
    seen: dict[str, str] = {}
    for topic in ledger.topics:
        for item in (*topic.entries, *topic.findings):
            if item.id in seen:
                raise ConfigError(
                    f"{where}.{topic.name}.{item.id} must be there once, got it in"
                    f" {seen[item.id]} as well"
                )
            seen[item.id] = topic.name
    for topic in ledger.topics:
        for entry in topic.entries:
            place = f"{where}.{topic.name}.{entry.id}"
            for base in entry.requires:
                choose(base, ledger.entries.keys() - {entry.id}, f"{place}.requires")
            if isinstance(entry, Statement) and entry.finding is not None:
                choose(entry.finding, ledger.findings, f"{place}.finding")
        for finding in topic.findings:
            place = f"{where}.{topic.name}.{finding.id}"
            for shown in finding.shown_by:
                choose(shown, ledger.entries, f"{place}.shown_by")
            if not ledger.shown_by(finding.id):
                raise ConfigError(f"{place}.shown_by must name an entry that shows it, got none")
    _check_rounds(ledger)


def _check_rounds(ledger: Ledger) -> None:
    def visit(name: str, path: tuple[str, ...]) -> None:
        if name in path:
            circle = " -> ".join([*path[path.index(name) :], name])
            where = f"{ledger.paper}.claims"
            raise ConfigError(f"{where}: requires must not go in a circle, got {circle}")
        if name not in done:
            for base in ledger.entries[name].requires:
                visit(base, (*path, name))
            done.add(name)

    done: set[str] = set()
    for name in ledger.entries:
        visit(name, ())
