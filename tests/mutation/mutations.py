"""Which changes a file is put through, one at a time: cosmic-ray's operators and a few of our own.

Ours are what a privacy library must notice: a bound taken away, noise halved or removed. Left out
is what no test should see: types, docstrings, texts of errors, how a kernel is compiled, and which
warnings are silenced.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators import (
    binary_operator_replacement,
    boolean_replacer,
    break_continue,
    comparison_operator_replacement,
    number_replacer,
    unary_operator_replacement,
    zero_iteration_for_loop,
)

SWAPS = {
    binary_operator_replacement: (
        *("ReplaceBinaryOperator_Add_Sub", "ReplaceBinaryOperator_Sub_Add"),
        *("ReplaceBinaryOperator_Mul_Div", "ReplaceBinaryOperator_Div_Mul"),
        *("ReplaceBinaryOperator_FloorDiv_Div", "ReplaceBinaryOperator_Mod_Mul"),
        *("ReplaceBinaryOperator_BitAnd_BitOr", "ReplaceBinaryOperator_BitOr_BitAnd"),
        *("ReplaceBinaryOperator_LShift_RShift", "ReplaceBinaryOperator_RShift_LShift"),
        "ReplaceBinaryOperator_Pow_Mul",
    ),
    comparison_operator_replacement: (
        *("ReplaceComparisonOperator_Eq_NotEq", "ReplaceComparisonOperator_NotEq_Eq"),
        *("ReplaceComparisonOperator_Is_IsNot", "ReplaceComparisonOperator_IsNot_Is"),
        *("ReplaceComparisonOperator_Lt_LtE", "ReplaceComparisonOperator_LtE_Lt"),
        *("ReplaceComparisonOperator_Gt_GtE", "ReplaceComparisonOperator_GtE_Gt"),
        *("ReplaceComparisonOperator_Lt_GtE", "ReplaceComparisonOperator_LtE_Gt"),
        *("ReplaceComparisonOperator_Gt_LtE", "ReplaceComparisonOperator_GtE_Lt"),
    ),
    unary_operator_replacement: (
        "ReplaceUnaryOperator_USub_UAdd",
        "ReplaceUnaryOperator_Delete_Invert",
        "ReplaceUnaryOperator_Delete_Not",
    ),
}
OPERATORS = (
    *(getattr(module, name) for module, names in SWAPS.items() for name in names),
    boolean_replacer.AddNot,
    boolean_replacer.ReplaceTrueWithFalse,
    boolean_replacer.ReplaceFalseWithTrue,
    boolean_replacer.ReplaceAndWithOr,
    boolean_replacer.ReplaceOrWithAnd,
    break_continue.ReplaceBreakWithContinue,
    break_continue.ReplaceContinueWithBreak,
    number_replacer.NumberReplacer,
    zero_iteration_for_loop.ZeroIterationForLoop,
)
BOUNDS = {"min", "max", "minimum", "maximum", "clip"}
DRAWS = {"standard_normal", "laplace", "add_integer_noise"}
Place = tuple[int, int]


@dataclass(frozen=True)
class Mutant:
    """A changed file; `was` and `now` are the lines in which it differs from the original."""

    source: str
    was: str
    now: str

    @property
    def key(self) -> str:
        return sha256(self.source.encode()).hexdigest()[:16]


def mutants(source: str) -> list[Mutant]:
    """All changes of a file, each once, in the order of its lines."""
    original = ast.dump(ast.parse(source))
    silent = list(_silent(ast.parse(source)))
    found: dict[str, Mutant] = {}
    for place, changed in sorted(
        (*_by_cosmic_ray(source), *_by_us(source)), key=lambda each: each[0]
    ):
        if any(first <= place < last for first, last in silent):
            continue
        try:
            tree = ast.dump(ast.parse(changed))
        except SyntaxError:
            continue
        if tree != original and tree not in found:
            found[tree] = Mutant(changed, *_difference(source, changed))
    return list(found.values())


def stated(source: str, changes: list[dict[str, str]]) -> list[Mutant]:
    """Changes that are written down: `was`, which the file must hold once, becomes `now`."""
    found = []
    for change in changes:
        if source.count(change["was"]) != 1:
            raise ValueError(f"was must be in the file once, got {change['was']!r}")
        found.append(Mutant(source.replace(change["was"], change["now"]), **change))
    return found


def _silent(tree: ast.Module) -> Iterator[tuple[Place, Place]]:
    for node in ast.walk(tree):
        quiet: list[ast.expr | ast.stmt | None] = []
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            quiet += node.decorator_list
        if isinstance(node, ast.FunctionDef):
            quiet.append(node.returns)
            # From the name to the first default: the star that makes arguments keyword-only.
            yield (node.lineno, node.col_offset), (node.body[0].lineno, 0)
        if isinstance(node, (ast.arg, ast.AnnAssign)):
            quiet.append(node.annotation)
        if isinstance(node, ast.Raise):
            quiet.append(node)
        if isinstance(node, ast.With):
            quiet += [item.context_expr for item in node.items]
        for each in quiet:
            if each is not None and each.end_lineno is not None:
                yield (each.lineno, each.col_offset), (each.end_lineno, each.end_col_offset or 0)


def _by_cosmic_ray(source: str) -> Iterator[tuple[Place, str]]:
    nodes = list(ast_nodes(get_ast(source)))
    for operator in OPERATORS:
        found = [
            (place, node) for node in nodes for place, _ in operator().mutation_positions(node)
        ]
        for occurrence, (place, node) in enumerate(found):
            if operator is number_replacer.NumberReplacer and occurrence % 2:
                # One more is enough of a change; one less is the same test again.
                continue
            if operator is boolean_replacer.AddNot and _is_comparison(node):
                continue
            yield place, mutate_code(source, operator(), occurrence)


def _is_comparison(node: Any) -> bool:
    """Whether a condition is one comparison, which the operators for those negate."""
    condition = node.children[2 if node.type == "test" else 1]
    return bool(condition.type == "comparison")


def _by_us(source: str) -> Iterator[tuple[Place, str]]:
    lines = source.encode().splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    data = source.encode()

    def span(node: ast.expr) -> tuple[int, int]:
        last = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        return starts[node.lineno - 1] + node.col_offset, last

    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        first, last = span(node)
        text = data[first:last].decode()
        given = [data[slice(*span(argument))].decode() for argument in node.args]
        instead: list[str] = []
        if name in BOUNDS and len(given) > 1:
            instead = given[:1] if name == "clip" else given
        elif name == "sqrt" and len(given) == 1:
            instead = given
        elif name in DRAWS:
            instead = [f"0 * {text}", f"0.5 * {text}"]
            if name == "add_integer_noise":
                instead = given[:1]
        for each in instead:
            changed = data[:first] + f"({each})".encode() + data[last:]
            yield (node.lineno, node.col_offset), changed.decode()


def _difference(source: str, changed: str) -> tuple[str, str]:
    before, after = source.splitlines(), changed.splitlines()
    same = [one == two for one, two in zip(before, after, strict=False)]
    first = same.index(False) if False in same else len(same)
    tail = 0
    while tail < min(len(before), len(after)) - first and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    parts = (before[first : len(before) - tail], after[first : len(after) - tail])
    was, now = (" ".join(" ".join(part).split()) for part in parts)
    return was, now
