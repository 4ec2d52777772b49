"""Calls of `python -m reproduction` that are wrong by construction, each with one thing wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from configurations import leaves
from wrong_values import wrong_values

Call = tuple[str, list[str]]
EXPERIMENT = "bombari2025/clipping_factors"
PARAMETERS = {"largest_ratio": 4.0, "points": 10}
STAGES = ("theory", "simulate", "summarise", "simulation", "intervals")


def workspace(folder: Path) -> dict[str, str]:
    """Files that are of the wrong kind for whatever asks for them, by what they are."""
    folder.mkdir(parents=True, exist_ok=True)
    contents = {
        "empty.nc": b"",
        "text.nc": b"no Dataset",
        "header.nc": b"\x89HDF\r\n\x1a\n" + b"\0" * 200,
        "classic.nc": b"CDF\x01\0\0\0\0",
        "garbage.json": b"{",
        "list.json": b"[]",
        "number.json": b"3",
        "object.json": b'{"a": 1}',
        "objects.json": b'[{"a": 1}]',
        "binary.json": bytes(range(256)),
        "page.md": b"no block here\n",
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    (folder / "folder").mkdir(exist_ok=True)
    return {name: str(folder / name) for name in (*contents, "folder")} | {
        "missing": str(folder / "missing"),
        "out": str(folder / "out" / "result"),
    }


def commands(files: dict[str, str], raw: dict[str, Any]) -> Iterator[Call]:
    out = files["out"]
    yield from stages(files)
    yield from experiments(files)
    yield from parameters(files, raw)
    yield from drawings(files, raw)
    yield from ledgers(files)
    for name in ("mnits", "", "MNIST", "../mnist", "mnist housing", "california", "digits"):
        yield f"data {name!r}", ["data", name, "--output", out]
    for mirror in ("example.org", "ftp://example.org", "http://", "", "file:///etc", "http://a b"):
        yield f"mirror {mirror!r}", ["data", "mnist", "--mirrors", mirror, "--output", out]
    for stage in ("schema", "scales"):
        yield f"{stage} into a folder", [stage, "--output", files["folder"]]
        yield f"{stage} below a file", [stage, "--output", f"{files['page.md']}/x"]
        yield f"{stage} with a word", [stage, "word", "--output", out]
    yield "a page without a block", ["imports", "--into", files["page.md"]]
    yield "a page that is not there", ["imports", "--into", files["missing"]]


def stages(files: dict[str, str]) -> Iterator[Call]:
    yield "nothing", []
    for name in ("theorem", "Theory", "", "simulation", "sumarise", "--theory", "3", "all", "é"):
        yield f"stage {name!r}", [name, EXPERIMENT, "--output", files["out"]]
    every = (
        *STAGES,
        "figure",
        "table",
        "data",
        "judge",
        "claim",
        "ledger",
        "page",
        "gate",
        "crate",
    )
    for stage in (*every, "docs", "places", "falsify", "caught", "schema"):
        yield f"{stage} alone", [stage]
        yield f"{stage}: an unknown option", [stage, "--colour", "red"]
        yield f"{stage}: an option cut short", [stage, "--outpu", files["out"]]
        yield f"{stage}: no value", [stage, "--output"]
        yield f"{stage}: a log that is a folder", [stage, EXPERIMENT, "--log", files["folder"]]


def experiments(files: dict[str, str]) -> Iterator[Call]:
    out, told = files["out"], json.dumps(PARAMETERS)
    names = (
        "bombari2025",
        "bombari2025/",
        "/clipping_factors",
        "",
        "/",
        "//",
        "bombari/trajectories",
    )
    for path in (*names, "../x/y", "bombari2025/../x", "BOMBARI2025/trajectories", "é/é", "a b/c"):
        for stage in STAGES:
            call = [stage, path, "--parameters", told, "--output", out, *extra(stage, files)]
            yield f"{stage} of {path!r}", call
    for recipe in ("trajectory", "", "os", "../coverage", "Coverage"):
        call = ["theory", EXPERIMENT, "--recipe", recipe, "--parameters", told, "--output", out]
        if recipe:
            yield f"recipe {recipe!r}", call
    for stage in ("simulate", "summarise", "simulation", "intervals"):
        call = [stage, EXPERIMENT, "--parameters", told, "--output", out, *extra(stage, files)]
        yield f"a recipe without {stage}", call
    for text in ("", "{", "[", "[]", "3", "null", "true", "text", "{'a': 1}", "[" * 5000):
        call = ["theory", EXPERIMENT, "--parameters", text, "--output", out]
        yield f"parameters {text[:20]!r}", call
    for name in ("theory", "data", "Theory", "a b", "é"):
        pair = f"{name}={files['text.nc']}"
        call = ["theory", EXPERIMENT, "--parameters", told, "--artifacts", pair, "--output", out]
        yield f"an artifact {name!r} that no argument takes", call
    for text in ("theory", "=x", "x=", "=", ""):
        call = ["theory", EXPERIMENT, "--parameters", told, "--artifacts", text, "--output", out]
        yield f"artifacts {text!r}", call
    for place in ("folder", "page.md"):
        target = files[place] if place == "folder" else f"{files[place]}/x.nc"
        yield f"into {place}", ["theory", EXPERIMENT, "--parameters", told, "--output", target]
    coverage = json.dumps(
        {"dimension": 2, "sample_size": 200, "budget": {"zcdp": 0.5}, "gradients": [60],
         "step_size": 0.25, "clip_constant": 5.0, "replicates": 2, "runs": 2}
    )  # fmt: skip
    common = ["brown2024/coverage", "--parameters", coverage, "--output", out]
    draws = {"--seed": "1", "--trials": "3", "--shard": "0/1"}
    wrong = {
        "--seed": ("-1", "1.5", "x", "", "nan", str(2**63), "1e3", "true"),
        "--trials": ("0", "-1", "1.5", "x", "", "nan", "1000000000", "true"),
        "--shard": ("1/1", "3/3", "-1/2", "0/0", "x", "1", "0/4", "0/1000000000", "", "/", "0/1/2"),
    }
    for option, values in wrong.items():
        for value in values:
            told_draws = [part for pair in (draws | {option: value}).items() for part in pair]
            yield f"simulate {option} {value!r}", ["simulate", *common, *told_draws]
    for option in ("--seed", "--trials"):
        fewer = [part for pair in draws.items() if pair[0] != option for part in pair]
        yield f"simulate without {option}", ["simulate", *common, *fewer]
    for place in (
        "missing",
        "folder",
        "empty.nc",
        "text.nc",
        "header.nc",
        "classic.nc",
        "list.json",
    ):
        yield f"summarise {place}", ["summarise", *common, "--shards", files[place]]
        pair = f"simulation={files[place]}"
        yield f"intervals of {place}", ["intervals", *common, "--artifacts", pair]
    yield "intervals without a simulation", ["intervals", *common]


def extra(stage: str, files: dict[str, str]) -> list[str]:
    """Further options that a stage must have."""
    if stage in ("simulate", "simulation"):
        summary = ["--summary", f"{files['out']}.summary.nc"] if stage == "simulation" else []
        return ["--seed", "1", "--trials", "2", *summary]
    return ["--shards", files["text.nc"]] if stage == "summarise" else []


def parameters(files: dict[str, str], raw: dict[str, Any]) -> Iterator[Call]:
    """Wrong parameters of every experiment, as a job would be given them."""
    for paper in raw["papers"]:
        for name, experiment in raw[paper]["experiments"].items():
            simulated = "trials" in experiment
            stage = "simulate" if simulated else "theory"
            given = experiment["parameters"]
            for path, value in leaves(given):
                for wrong in list(wrong_values(path[-1], value))[:3]:
                    try:
                        text = json.dumps(replaced(given, path, wrong))
                    except (TypeError, ValueError):
                        continue
                    call = [stage, f"{paper}/{name}", "--recipe", experiment.get("recipe", name)]
                    call += ["--parameters", text, "--output", files["out"]]
                    words = f"{stage} {paper}/{name}: {'.'.join(path)} = {wrong!r:.40}"
                    yield words, [*call, *extra(stage, files)]


def replaced(parameters: dict[str, Any], path: tuple[str, ...], value: Any) -> dict[str, Any]:
    first, *rest = path
    inner = replaced(parameters[first], tuple(rest), value) if rest else value
    return {**parameters, first: inner}


def drawings(files: dict[str, str], raw: dict[str, Any]) -> Iterator[Call]:
    out = files["out"]
    for paper in raw["papers"]:
        for kind in ("figure", "table"):
            for name, drawing in raw[paper].get(f"{kind}s", {}).items():
                pairs = [f"{argument}={files['text.nc']}" for argument in drawing["artifacts"]]
                call = [kind, f"{paper}/{name}", "--output", f"{out}.png", "--artifacts"]
                yield f"{kind} {name} of text", [*call, *pairs]
                yield f"{kind} {name} of nothing", call[:-1]
                yield f"{kind} {name} of one more", [*call, *pairs, f"other={files['text.nc']}"]
                yield f"{kind} {name}x", [kind, f"{paper}/{name}x", *call[2:], *pairs]
                missing = [pair.replace("text.nc", "missing.nc") for pair in pairs]
                yield f"{kind} {name} of nothing there", [*call, *missing]
    for name in ("bombari2025", "bombari2025/", "bombary2025/fig1", "", "bombari2025/panels"):
        yield f"figure {name!r}", ["figure", name, "--output", f"{out}.png"]
    yield "a scale", ["figure", "bombari2025/fig9", "--scale", "tiny", "--output", f"{out}.png"]


def ledgers(files: dict[str, str]) -> Iterator[Call]:
    out = files["out"]
    broken = ("missing", "folder", "garbage.json", "number.json", "object.json", "objects.json")
    for place in (*broken, "binary.json", "text.nc", "page.md"):
        file = files[place]
        yield f"gate of {place}", ["gate", file, "--output", out]
        shown = ["--benchmarks", files["folder"], "--entries", f"{out}.entries", "--output", out]
        yield f"page of {place}", ["page", file, *shown]
        yield f"crate of {place}", ["crate", file, "--published", "2026-01-01", "--output", out]
        kinds = ["--csv", f"{out}.csv", "--json", f"{out}.json", "--findings", f"{out}.f.csv"]
        told = ["--ledgers", "bombari2025=config/claims/bombari2025", *kinds]
        yield f"ledger of {place}", ["ledger", file, *told]
        if place != "list.json":
            yield f"caught of {place}", ["caught", file, "--output", out]
    for text in ("", "{", "3", "{}", "null", "[3]", '["a"]', "[null]", "[[]]"):
        yield f"cases {text!r}", ["judge", "bombari2025", "--cases", text, "--output", out]
        yield f"claim {text!r}", ["claim", "bombari2025", "--cases", text, "--output", out]
    for text in ("[]", "[{}, {}]"):
        yield f"claim of {text}", ["claim", "bombari2025", "--cases", text, "--output", out]
    yield (
        "a scale of a case",
        ["judge", "bombari2025", "--cases", '[{"runs": [], "scale": "tiny"}]', "--output", out],
    )
    for paper in ("bombary2025", "", "../x", "BOMBARI2025"):
        yield f"judge {paper!r}", ["judge", paper, "--cases", "[]", "--output", out]
    for place in ("missing", "folder", "empty.nc", "text.nc", "header.nc"):
        pair = f"theory/trajectories={files[place]}"
        call = ["judge", "bombari2025", "--cases", "[]", "--artifacts", pair, "--output", out]
        yield f"judge by {place}", call
    for pair in ("bombary2025=config/claims/bombari2025", f"bombari2025={files['missing']}", "x"):
        yield f"docs of {pair}", ["docs", "--ledgers", pair, "--output", out]
        call = ["places", "bombari2025", "--ledgers", pair, "--text", files["page.md"]]
        yield f"places of {pair}", call
    told = ["--ledgers", "bombari2025=config/claims/bombari2025"]
    yield "places without a text", ["places", "bombari2025", *told, "--text", files["missing"]]
    yield "places of another paper", ["places", "brown2024", *told, "--text", files["page.md"]]
    for date in ("", "today", "2026-13-01", "20260101x", "01/01/2026"):
        call = ["crate", files["objects.json"], "--published", date, "--output", out]
        yield f"published {date!r}", call
    for path in ("bombari2025", "bombari2025/nowhere", "brown2024/", "x/y", ""):
        call = ["falsify", path, "--experiments", "{}", "--groups", "[]"]
        yield f"falsify {path!r}", [*call, "--output", out]
    for text in ("[]", "{", "3"):
        call = ["falsify", "brown2024/nowhere", "--experiments", text, "--groups", "[]"]
        yield f"experiments {text}", [*call, "--output", out]
