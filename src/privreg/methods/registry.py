"""The methods of the library, in the order in which plans search them.

A method of one's own is one more class in `METHODS`; nothing else lists methods.
"""

from __future__ import annotations

from privreg.methods.adassp import AdaSSP
from privreg.methods.correlated_noise import CorrelatedNoise
from privreg.methods.full_batch_dpgd import FullBatchDPGD
from privreg.methods.method import Method
from privreg.methods.one_pass_dpgd import OnePassDPGD
from privreg.methods.private_least_squares import PrivateLeastSquares
from privreg.methods.private_regression import PrivateRegression

METHODS: tuple[type[Method], ...] = (
    PrivateRegression,
    FullBatchDPGD,
    OnePassDPGD,
    CorrelatedNoise,
    AdaSSP,
    PrivateLeastSquares,
)


def by_name() -> dict[str, type[Method]]:
    """Methods by their names."""
    return {method.name: method for method in METHODS}


def searched() -> dict[str, type[Method]]:
    """Methods by the names under which plans list their candidates."""
    return {name: method for method in METHODS for name in method.searched()}
