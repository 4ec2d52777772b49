"""What a constructor has checked stays what it was: nobody can write to the arrays it holds."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle

import made
import numpy as np
import pytest
from made import fresh
from targets import Target, targets

from privreg.algorithms import one_pass_dpgd
from privreg.algorithms.dp_ftrl import dp_ftrl
from privreg.algorithms.shaped_dp_ftrl import shaped_dp_ftrl

CONSTRUCTORS = [
    target
    for target in targets()[0]
    if inspect.isclass(target.function) and dataclasses.is_dataclass(target.function)
]


def held(instance: object) -> dict[str, np.ndarray]:
    values = {part.name: getattr(instance, part.name) for part in dataclasses.fields(instance)}
    return {name: value for name, value in values.items() if isinstance(value, np.ndarray)}


@pytest.mark.parametrize("target", CONSTRUCTORS, ids=lambda target: target.name)
def test_what_was_checked_stays(target: Target):
    given = {name: fresh(value) for name, value in target.arguments.items()}
    instance = target.function(**given)
    before = {name: array.copy() for name, array in held(instance).items()}
    for value in given.values():
        if isinstance(value, np.ndarray):
            value[...] = np.nan if value.dtype.kind == "f" else -1
    for name, array in held(instance).items():
        np.testing.assert_array_equal(array, before[name])
        assert not array.flags.writeable, f"{target.name} holds a writable {name}"


def test_a_copied_mechanism_is_checked_again():
    """A deep copy has ordinary arrays: noise that was taken out of them is missed at use."""
    rng = np.random.Generator(np.random.SFC64(1))
    mechanism = copy.deepcopy(made.one_setting())
    mechanism.noise_shape[:] = 0
    with pytest.raises(ValueError, match="noise_shape must keep"):
        one_pass_dpgd.fit(mechanism, made.FEATURES, made.LABELS, rng)
    correlated = pickle.loads(pickle.dumps(made.ftrl_mechanism()))
    before = correlated.spent()
    # The noise of a later step almost cancels what hides an earlier one.
    correlated.decoder[1:] *= 4
    run = dp_ftrl(made.SAMPLES, mechanism=correlated, step_size=0.05, rng=rng)
    assert run.release().budget.rho > 1.5 * before
    shaped = copy.deepcopy(made.shaped_mechanism())
    shaped.covariance.diagonal[:] = 0
    with pytest.raises(ValueError, match="diagonal must be"):
        shaped_dp_ftrl(made.SAMPLES, mechanism=shaped, step_size=0.05, rng=rng)
