"""Privacy: arguments out of range are refused by name."""

import numpy as np
import pytest

from privreg.auditing import neighbouring_tables
from privreg.privacy.budget import Budget, shared_sample_size, sum_sensitivity
from privreg.privacy.release import Release, compose
from privreg.privacy.renyi import LowRankUpdate, renyi_divergence

SLANTED = np.array([[1.0, 0.1], [0.0, 1.0]])
INDEFINITE = LowRankUpdate([1.0], [[1.0]], [[-2.0]])
ROWS, LABELS = np.arange(1.0, 11.0).reshape(5, 2), np.arange(1.0, 6.0)
ONE = Budget.zcdp(1.0)


def tables(**given):
    return neighbouring_tables(ROWS, LABELS, **{"record": 0, "neighbours": "add-remove", **given})


@pytest.mark.parametrize(
    ("call", "given", "message"),
    [
        (Budget.zcdp, {"rho": -1.0}, "rho"),
        (Budget.zcdp, {"rho": 1e61}, "rho must be at most"),
        (Budget.zcdp, {"rho": 1.0, "neighbours": "replace-two"}, "neighbours"),
        (Budget.half_square, {"root": 2e13}, r"root must be .* 1e\+12.*, got 2e\+13"),
        (Budget.approximate, {"epsilon": 1.0, "delta": 1.0}, "delta"),
        (ONE.epsilon, {"delta": 1.0}, "delta"),
        (Budget(np.inf).epsilon, {"delta": 1.0}, "delta"),
        (ONE.share, {"fraction": np.nextafter(1.0, 2.0)}, "fraction must be"),
        (ONE.__add__, {"other": Budget.zcdp(1.0, neighbours="add-remove")}, "neighbours"),
        (Budget.approximate, {"epsilon": 2e12, "delta": 0.1}, "epsilon"),
        (sum_sensitivity, {"bound": 1.0, "neighbours": "both"}, "'zero-out', got 'both'"),
        *(
            (shared_sample_size, {"sample_size": n, "records": 3, "neighbours": to}, "sample_size")
            for n, to in ((None, "add-remove"), (0.5, "add-remove"), (1e15 + 1, "zero-out"))
        ),
        (
            shared_sample_size,
            {"sample_size": None, "records": 0, "neighbours": "zero-out"},
            "sample_size must be at least 1",
        ),
        (tables, {"neighbours": "replace-one"}, "replacement must be given"),
        (tables, {"replacement": ([[1.0, 2.0]], [1.0])}, "replacement must be given"),
        (
            tables,
            {"neighbours": "replace-one", "replacement": (ROWS, LABELS)},
            r"replacement must have shape \(1, 2\)",
        ),
        (tables, {"neighbours": "replace-one", "replacement": 3.0}, "replacement must be a pair"),
        (tables, {"record": 5}, "record must be a whole number, at most 4"),
        (tables, {"groups": ["a", "b"]}, "groups must have shape"),
        (tables, {"neighbours": "other"}, "neighbours must be one of"),
        (Release, {"value": 1.0, "budget": 0.1}, "budget must be a Budget"),
        (Release, {"value": 1.0, "budget": ONE, "assumptions": "bounds"}, "must be a tuple"),
        (Release, {"value": 1.0, "budget": ONE, "assumptions": ("bounds", 3)}, "a tuple of str"),
        (Release, {"value": 1.0, "budget": Budget(np.inf)}, "budget must be finite for a release"),
        (compose, {}, "at least one"),
        (
            renyi_divergence,
            {"mean_difference": [0], "covariance_p": [1], "covariance_q": [1], "order": 0.0},
            "order",
        ),
    ],
)
def test_arguments_out_of_range_are_named(call, given, message):
    with pytest.raises(ValueError, match=message):
        call(**given)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.0], [1.0, 1.0], [1.0]), "covariance_p"),
        (([0.0], [1.0], [[1.0, 0.0]]), "covariance_q"),
        (([0.0], [-1.0], [1.0]), "covariance_p"),
        (([0.0, 0.0], np.eye(2), [[1.0, 2.0], [2.0, 1.0]]), "covariance_q"),
        (([np.nan], [1.0], [1.0]), "mean_difference"),
        (([0.0], INDEFINITE, [1.0]), "covariance_p must be positive definite"),
        (([0.0], [1.0], INDEFINITE), "covariance_q must be positive definite"),
        (([0.0, 0.0], SLANTED, np.eye(2)), "covariance_p must be symmetric"),
        (([0.0, 0.0], np.eye(2), 1e-6 * SLANTED), "covariance_q must be symmetric"),
        (([0.0], [[0.0]], [[1.0]]), "covariance_p must be positive definite"),
        (([0.0, 0.0], np.eye(2), np.diag([1.0, 0.0])), "covariance_q must be positive"),
    ],
)
def test_covariances_that_are_none_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        renyi_divergence(*arguments, order=2.0)
