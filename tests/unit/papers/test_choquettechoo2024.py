"""The recipes of choquettechoo2024: mechanisms by dense matrices, shards, the drawn slopes."""

import numpy as np
import pytest
from scipy.linalg import circulant, sqrtm

from reproduction.papers.choquettechoo2024 import mechanisms
from reproduction.papers.choquettechoo2024.mechanisms import (
    MECHANISMS,
    Participation,
    prefix_errors,
    tuned_damping,
)

EPOCHS = Participation(steps=24, participations=3, separation=8)
ONCE = Participation(steps=24, participations=1, separation=1)


@pytest.mark.parametrize("setting", [ONCE, EPOCHS])
def test_fft_mechanism_equals_its_matrices(setting):
    steps = setting.steps
    ones = np.concatenate([np.ones(steps), np.zeros(steps)])
    root = sqrtm(circulant(ones).astype(complex) + 0j)
    np.testing.assert_allclose(root @ root, circulant(ones), atol=1e-6)
    encoder, decoder = root[:, :steps], root[:steps]
    np.testing.assert_allclose(decoder @ encoder, np.tril(np.ones((steps, steps))), atol=1e-6)
    columns = encoder[:, :: setting.separation] if setting.participations > 1 else encoder[:, :1]
    gram = np.abs(columns.conj().T @ columns)
    expected = np.sqrt(gram.sum()) * np.linalg.norm(decoder[0])
    found = mechanisms._fft(setting, 1).errors
    assert found.mean == pytest.approx(expected, rel=1e-5)
    assert found.mean == found.largest


@pytest.mark.parametrize("setting", [ONCE, EPOCHS])
def test_no_mechanism_beats_the_dense_optimum_and_damping_helps(setting):
    errors = {name: prefix_errors(name, setting).errors.mean for name in MECHANISMS}
    best = errors.pop("multi_epoch")
    assert all(best <= error * (1 + 1e-3) for error in errors.values())
    assert errors["nu_dp_ftrl"] <= errors["optimal_cc"]
    assert errors["nu_dp_ftrl"] < errors["dp_sgd"]
    assert 0 < tuned_damping(setting) < 1


def test_restarts_of_the_fft_mechanism_are_block_diagonal():
    stretches = 3
    length = EPOCHS.steps // stretches
    root = sqrtm(circulant(np.concatenate([np.ones(length), np.zeros(length)])).astype(complex))
    encoder, decoder = np.linalg.norm(root[:, 0]), np.linalg.norm(root[0])
    # One visit a stretch: columns of different stretches do not overlap.
    before = np.repeat(np.arange(stretches), length)
    expected = encoder * np.sqrt(stretches) * decoder * np.sqrt(np.mean(before + 1))
    assert mechanisms._fft(EPOCHS, stretches).errors.mean == pytest.approx(expected, rel=1e-5)


def test_restarts_help_a_baseline_or_are_not_made():
    for name in ("tree_aggregation", "optimal_cc", "full_honaker", "fft"):
        best = prefix_errors(name, EPOCHS)
        assert best.stretches in (1, 3)
        assert best.errors.mean <= mechanisms._RESTARTED[name](EPOCHS, 1).errors.mean
        assert prefix_errors(name, ONCE).stretches == 1
