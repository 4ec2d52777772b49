"""The comparison with other libraries: how it judges, and that its page says what was measured."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[3]
PEERS = ROOT / "benchmarks/peers"
sys.path.insert(0, str(PEERS))
judge, protocol, recipes = map(import_module, ("judge", "protocol", "recipes"))
sys.path.remove(str(PEERS))
PAGE = (ROOT / "docs/comparison.md").read_text()
NOBODY = protocol.Promise(1e12, np.inf, np.zeros(3, dtype=bool))


def part(text, name):
    return text.partition(f"<!-- {name} -->\n")[2].partition(f"<!-- end of {name} -->")[0]


def rows(table):
    """Cells of a Markdown table without its head."""
    lines = [line for line in table.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def numbers(cell):
    """Mean and standard error."""
    mean, _, error = cell.strip("*").replace(",", "").partition(" ± ")
    return float(mean), float(error or 0)


def test_the_committed_exceptions_are_those_of_the_committed_errors():
    listed = {
        tuple(row[:2]): {row[4], *row[6].split("; ")} for row in rows(part(PAGE, "exceptions"))
    }
    table, found = "", rows(part(PAGE, "errors"))
    for name, epsilon, *errors in found:
        table = name.partition(" (")[0] or table
        pairs = dict(zip(judge.PEERS, map(numbers, errors), strict=True))
        (ours, error), best = pairs[judge.OURS], min(pairs[peer] for peer in judge.PRIVATE_PEERS)
        below = {peer for peer in judge.PRIVATE_PEERS if pairs[peer][0] < ours}
        # The error of a paired difference is at most the sum of both.
        assert below <= listed.get((table, epsilon), below if ours - sum(best) <= error else set())
    assert len(found) == 30


def test_the_locks_pin_what_was_measured():
    measured = dict(re.findall(r"^- (\w+): (.+)$", part(PAGE, "versions"), re.M))
    assert set(measured) == {"diffprivlib", "opendp", "privreg"}
    for name in ("diffprivlib", "opendp"):
        pinned = re.findall(r"^([a-z-]+)==(\S+)", (PEERS / f"{name}.txt").read_text(), re.M)
        versions = {tuple(each.split(" ")) for each in measured[name].split(", ")}
        assert versions <= set(pinned)
        assert name in dict(versions)


def test_held_out_errors_are_one_for_the_mean_and_zero_for_the_truth():
    rng = np.random.default_rng(0)
    features = rng.uniform(-1, 1, (400, 2))
    labels = features @ [0.3, -0.2] + 0.1
    held_out = {"rows": features, "labels": labels, "held": np.tile(np.arange(400), (3, 1))}
    found = judge.held_out_errors([[0.3, -0.2, 0.1], [0, 0, labels.mean()], [0, 0, 1e9]], held_out)
    assert found[0] < 1e-20
    assert found[1] == pytest.approx(1)
    assert found[2] == pytest.approx(np.mean((1 - labels) ** 2) / labels.var())


def test_a_distance_is_the_held_out_error_beyond_the_best():
    rng = np.random.default_rng(1)
    design = np.column_stack([rng.uniform(-1, 1, (300, 2)), np.ones(300)])
    labels = 0.2 * design[:, 0] ** 2 + rng.uniform(-0.1, 0.1, 300)
    best = np.linalg.lstsq(design, labels, rcond=None)[0]
    held_out = {"coefficients": best, "gram": design.T @ design / 300}
    other = best + np.array([0.1, -0.05, 0.02])
    errors = [np.mean((labels - design @ each) ** 2) for each in (other, best)]
    (found,) = judge.distances([other.tolist()], held_out)
    assert found == pytest.approx(errors[0] - errors[1])


def population(rng, n):
    features = rng.uniform(-1, 1, (n, 3))
    labels = features @ [0.3, -0.2, 0.1] + 0.1 + rng.uniform(-0.2, 0.2, n)
    return features, labels


@pytest.mark.parametrize(
    ("fit", "setting"),
    [
        (recipes.boosted_adassp, (1.0, 5)),
        (recipes.standardised, (3.0, 9.0)),
        (recipes.plain_descent, None),
        (recipes.bins, (1.0, 9)),
    ],
)
def test_recipes_are_least_squares_without_noise(rng, fit, setting):
    features, labels = population(rng, 20_000)
    design = np.column_stack([features, np.ones(len(labels))])
    plain = np.linalg.lstsq(design, labels, rcond=None)[0]
    found = fit(features, labels, NOBODY, rng, setting).coefficients
    # Bins lose what lies within them: 512 of 20,000 rows leave standard errors of .003.
    assert found == pytest.approx(plain, abs=0.01)


def test_intervals_of_bins_cover(rng):
    promise = protocol.Promise(0.5, 4.0, np.zeros(3, dtype=bool))
    covered, finite = [], []
    for _ in range(40):
        features, labels = population(rng, 4_000)
        fit = recipes.bins(features, labels, promise, rng, (50.0, 6))
        covered.append(np.abs(fit.coefficients[:-1] - [0.3, -0.2, 0.1]) <= fit.half_widths)
        finite.append(np.isfinite(fit.half_widths))
    # 120 slopes: three standard errors of .95 are .06.
    assert np.mean(covered) > 0.89
    assert np.mean(finite) > 0.9


def test_short_rows_are_short_and_have_the_same_predictions(rng):
    promise = protocol.Promise(1.0, 1.0, np.array([False, True, True]))
    levels = np.eye(3)[rng.integers(3, size=50)][:, 1:]
    table = np.column_stack([rng.uniform(-1, 1, 50), 2 * levels - 1])
    short = promise.short(table)
    assert np.linalg.norm(short, axis=1).max() <= promise.short_norm
    theta = rng.standard_normal(4)
    found = promise.fit_of(theta).coefficients
    assert table @ found[:-1] + found[-1] == pytest.approx(short @ theta)


def test_runners_of_others_import_nothing_of_this_library():
    for name in ("fit_diffprivlib", "fit_opendp", "protocol", "../least_squares/populations"):
        assert "privreg" not in (PEERS / f"{name}.py").read_text()
