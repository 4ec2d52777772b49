"""Ledgers that are wrong by construction: one thing changed in a topic of a real one."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from wrong_values import INFINITY, NAN

from reproduction.claims.known import Known

Raw = dict[str, Any]
Case = tuple[str, Raw]
About = Callable[[str], Known | None]
LISTS = ("statements", "cross_checks", "findings")
NO_TEXT = (None, "", [], {}, 3, True)
NO_NUMBER = (None, True, "text", "0.5", NAN, [], {}, {"a": 1})


def texts(text: str) -> Iterator[tuple[str, bytes]]:
    """The file of a topic, damaged so that it is no mapping in YAML."""
    lines = text.splitlines(keepends=True)
    top = next(line for line in lines if line.startswith("topic"))
    at = lines.index(top)
    yield "empty", b""
    yield "blank", b"\n \n"
    yield "a comment", b"# nothing else\n"
    yield "a list at the top", b"- topic: one\n"
    yield "a number", b"3\n"
    yield "a text", b"topic\n"
    yield "null", b"~\n"
    yield "two documents", f"{text}\n---\n{text}".encode()
    yield "UTF-16", text.encode("utf-16")
    yield "Latin 1", f"{text}# \xe9\n".encode("latin-1")
    yield "a NUL", text.encode() + b"\x00\n"
    yield "a tab", "".join((*lines[: at + 1], "\tabout: one\n", *lines[at + 1 :])).encode()
    yield "an open bracket", f"{text}\nabout: [1, 2\n".encode()
    yield "an open quote", f'{text}\nabout: "one\n'.encode()
    yield "an unknown alias", f"{text}\nabout: *nowhere\n".encode()
    yield "a tag", f"{text}\nabout: !!python/object/apply:os.system [true]\n".encode()
    yield "no date", f"{text}\nabout: 2020-99-99\n".encode()
    yield "deep brackets", f"{text}\nabout: {'[' * 3000}\n".encode()
    yield "a list as key", f"{text}\n? [1, [2]]\n: one\n".encode()
    yield "a merge of a number", f"{text}\n<<: 3\n".encode()
    for line in [line for line in lines if line[:1].isalpha()]:
        key = line.partition(":")[0]
        yield f"{key} twice", f"{text}\n{key}: one\n".encode()
        yield f"{key}: two colons", text.replace(line, f"{key}: one: two\n", 1).encode()
    for position in range(0, len(lines), 7):
        damaged = [*lines[:position], "}\n", *lines[position:]]
        yield f"a brace in line {position}", "".join(damaged).encode()


def topics(topic: Raw, about: About) -> Iterator[Case]:
    """The topic with one thing changed, told in words."""
    for key in ("topics", "statement", "Statements", "crosschecks", "finding", "name", "id"):
        yield f"an unknown key {key}", topic | {key: []}
    for wrong in NO_TEXT:
        yield f"topic: {wrong!r}", topic | {"topic": wrong}
    yield "no topic", {key: value for key, value in topic.items() if key != "topic"}
    empty = {key: value for key, value in topic.items() if key not in (*LISTS, "identities")}
    yield "nothing in it", empty
    for wrong in ([], 3, "", True):
        yield f"about: {wrong!r}", topic | {"about": wrong}
    for wrong in ([1], 3, "text", True, {"checks": []}, {"figures": "fig1"}):
        yield f"shared: {wrong!r}", topic | {"shared": wrong}
    for key in ("ours", "requires", "evidence"):
        for wrong in ("text", 3, True):
            yield f"shared.{key}: {wrong!r}", topic | {"shared": {key: wrong}}
    yield "shared.evidence.select", topic | {"shared": {"evidence": {"select": [1]}}}
    for kind in LISTS:
        for wrong in (3, "text", True, {"a": 1}, [3], ["text"], [None], [[]], [{}]):
            yield f"{kind}: {wrong!r}", topic | {kind: wrong}
        for position, entry in enumerate(topic.get(kind, [])):
            entries = findings if kind == "findings" else judged
            for words, wrong in entries(entry, topic, kind, about):
                listed = topic[kind]
                changed = [*listed[:position], wrong, *listed[position + 1 :]]
                yield f"{entry['id']}: {words}", topic | {kind: changed}
            yield f"{entry['id']} twice", topic | {kind: [*topic[kind], entry]}


def findings(entry: Raw, topic: Raw, kind: str, about: About) -> Iterator[Case]:
    yield from common(entry)
    for wrong in ("typos", "", "Constant", 3, None, True, []):
        yield f"severity {wrong!r}", entry | {"severity": wrong}
    for wrong in ([], None, 3, "text", [None], [3], [""], {}):
        yield f"places {wrong!r}", entry | {"places": wrong}
    for wrong in (["nowhere-to-be-found"], "text", 3, [None], [3], ["No Id"], {}):
        yield f"shown_by {wrong!r}", entry | {"shown_by": wrong}
    for key in ("severity", "places", "printed", "holds", "how_we_know", "downstream"):
        yield f"no {key}", {name: value for name, value in entry.items() if name != key}
    for key in ("printed", "holds", "how_we_know", "downstream"):
        for wrong in NO_TEXT:
            yield f"{key} {wrong!r}", entry | {key: wrong}


def common(entry: Raw) -> Iterator[Case]:
    for wrong in (None, "", 3, True, [], "Upper", "under_score", "two words", "-a", "a--b", "é"):
        yield f"id {wrong!r}", entry | {"id": wrong}
    yield "no id", {key: value for key, value in entry.items() if key != "id"}
    for key in ("statment", "check", "Id", "sverity", "note_", ""):
        yield f"an unknown key {key!r}", entry | {key: "text"}


def judged(entry: Raw, topic: Raw, kind: str, about: About) -> Iterator[Case]:
    """A statement or a cross-check."""
    yield from common(entry)
    said = "statement" if kind == "statements" else "compares"
    for wrong in NO_TEXT:
        yield f"{said} {wrong!r}", entry | {said: wrong}
        if wrong is not None:
            yield f"note {wrong!r}", entry | {"note": wrong}
    yield f"no {said}", {key: value for key, value in entry.items() if key != said}
    for wrong in (["nowhere-to-be-found"], [entry["id"]], "text", 3, [None], ["No Id"], {}):
        yield f"requires {wrong!r}", entry | {"requires": wrong}
    for wrong in ("fig99", "figure 1", 3, True, [], "", {}):
        yield f"figure {wrong!r}", entry | {"figure": wrong}
    for wrong in ("reproducd", "", 3, None, True, []):
        yield f"expect {wrong!r}", entry | {"expect": wrong}
    if kind == "statements":
        for wrong in ("theorm", "", 3, None, True, []):
            yield f"kind {wrong!r}", entry | {"kind": wrong}
        yield "passed for a statement", entry | {"expect": "passed"}
        yield "an unknown finding", entry | {"finding": "nowhere-to-be-found"}
        if "finding" not in entry:
            yield "contradicted without a finding", entry | {"expect": "contradicted"}
        if "printed" not in entry:
            yield "a printed number that is not given", entry | {"kind": "printed number"}
    else:
        yield "reproduced for a cross-check", entry | {"expect": "reproduced"}
    if "note" not in entry:
        yield "untested without a note", entry | {"expect": "untested"}
    for wrong in (3, "text", {"a": 1}, [3], [None], [{}], ["text"]):
        yield f"checks {wrong!r}", {**entry, "checks": wrong}
    if "checks" in entry:
        yield "checks []", {**entry, "checks": []}
        yield "no checks", {key: value for key, value in entry.items() if key != "checks"}
        shared = (topic.get("shared") or {}).get("evidence") or {}
        for position, probe in enumerate(entry["checks"]):
            for words, wrong in probes(probe, shared, about):
                checks = [*entry["checks"][:position], wrong, *entry["checks"][position + 1 :]]
                yield words, entry | {"checks": checks}
    elif "depends_on_choice" in entry:
        choice = entry["depends_on_choice"]
        for wrong in (3, "text", [], {}, choice | {"runs": choice["runs"][:1]}, choice | {"x": 1}):
            yield f"choice {wrong!r:.40}", entry | {"depends_on_choice": wrong}
        yield "checks beside a choice", entry | {"checks": choice["runs"][0]["checks"]}


def probes(probe: Raw, shared: Raw, about: About) -> Iterator[Case]:
    yield "an unknown key of a check", probe | {"evidance": {}}
    yield "no rejects", {key: value for key, value in probe.items() if key != "rejects"}
    for wrong in (
        [],
        None,
        3,
        "text",
        [None],
        [True],
        ["text"],
        [NAN],
        [{}],
        [{"times": 2, "x": 1}],
    ):
        yield f"rejects {wrong!r}", probe | {"rejects": wrong}
    for wrong in ([], 3, "", True, {}):
        yield f"label {wrong!r}", probe | {"label": wrong}
    check = probe["check"]
    for words, wrong in checks(check):
        yield words, probe | {"check": wrong}
    if check["kind"] == "close" and isinstance(check["expected"], int | float):
        yield "rejects what is expected", probe | {"rejects": [check["expected"]]}
    evidence = merged(shared, probe.get("evidence") or {})
    for words, wrong in evidences(evidence, about):
        yield words, probe | {"evidence": wrong}
    for key in ("expected", "low", "high"):
        if isinstance(check.get(key), dict):
            for words, wrong in evidences(check[key], about):
                if isinstance(wrong, int) and not isinstance(wrong, bool):
                    continue  # A number may stand there as well.
                yield f"{key}: {words}", probe | {"check": check | {key: wrong}}


def merged(shared: Raw, own: Raw) -> Raw:
    same = own.get("artifact", shared.get("artifact")) == shared.get("artifact")
    select = {**(shared.get("select") or {}), **(own.get("select") or {})} if same else None
    found = {**shared, **own}
    if select is not None:
        found["select"] = select
    elif "select" not in own:
        found.pop("select", None)
    return found


def checks(check: Raw) -> Iterator[Case]:
    for wrong in ("closer", "", 3, None, True, []):
        yield f"check.kind {wrong!r}", check | {"kind": wrong}
    yield "no check.kind", {key: value for key, value in check.items() if key != "kind"}
    yield "an unknown key of check", check | {"tolerance": 0.1}
    for key in ("expected", "low", "high", "direction", "dimension", "labels", "of"):
        if key in check:
            yield f"no check.{key}", {name: value for name, value in check.items() if name != key}
    for key in ("expected", "low", "high"):
        if isinstance(check.get(key), int | float):
            for wrong in NO_NUMBER:
                yield f"check.{key} {wrong!r}", check | {key: wrong}
    for key in ("absolute", "relative", "sigmas", "slack"):
        if key in check:
            for wrong in (*(each for each in NO_NUMBER if each is not None), -1, INFINITY):
                yield f"check.{key} {wrong!r}", check | {key: wrong}
    if check["kind"] == "close":
        bare = ("absolute", "relative", "sigmas")
        yield "no tolerance", {key: value for key, value in check.items() if key not in bare}
    if check["kind"] == "between" and all(
        isinstance(check[k], int | float) for k in ("low", "high")
    ):
        yield "low above high", check | {"low": check["high"] + 1.0}
    if "direction" in check:
        for wrong in ("up", "", 3, None, True):
            yield f"direction {wrong!r}", check | {"direction": wrong}
    if "labels" in check:
        for wrong in ([], check["labels"][:1], 3, None, "text", {}):
            yield f"labels {wrong!r}", check | {"labels": wrong}
    if "strict" in check:
        for wrong in (3, "yes", None, []):
            yield f"strict {wrong!r}", check | {"strict": wrong}
    if "of" in check:
        for wrong in ({"kind": "monotone", "direction": "increasing"}, 3, [], {}, "text"):
            yield f"of {wrong!r}", check | {"of": wrong}


def evidences(evidence: Raw, about: About) -> Iterator[Case]:
    for wrong in (3, [], "text", True):
        yield f"evidence {wrong!r}", wrong
    yield "an unknown key of evidence", evidence | {"selct": {}}
    artifact = evidence["artifact"]
    kind, _, name = artifact.partition("/")
    for wrong in ("", 3, True, [], name, f"{kind}/{name}x", f"{kind}s/{name}", "data/mnits"):
        yield f"artifact {wrong!r}", evidence | {"artifact": wrong}
    for wrong in ("", 3, True, [], {}, "Upper", "two words", "../a"):
        yield f"variable {wrong!r}", evidence | {"variable": wrong}
    for wrong in ([1], 3, "text", True):
        yield f"select {wrong!r}", evidence | {"select": wrong}
    known = about(artifact)
    if known is None:
        return
    yield "a variable that is not there", evidence | {"variable": f"{evidence['variable']}_x"}
    select = evidence.get("select") or {}
    for coordinate in ("nowhere", "trail", "spectrm"):
        yield f"select by {coordinate}", evidence | {"select": {**select, coordinate: 1}}
    for coordinate in select:
        if known.coordinates[coordinate].labels is None:
            continue
        for label in ("no such label", 1.234567e99, -1.234567e99, [], ["no such label"]):
            wrong = evidence | {"select": {**select, coordinate: label}}
            yield f"{coordinate} = {label!r}", wrong


def deep(topic: Mapping[str, Any]) -> Raw:
    """A copy that a reader may change."""
    return copy.deepcopy(dict(topic))
