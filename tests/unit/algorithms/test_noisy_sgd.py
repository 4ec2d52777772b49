"""Records of noisy SGD drawn again from their stream, rows of any size, and the ends of ranges."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from privreg.algorithms.noisy_sgd import (
    LinearRecords,
    clipped_normal_variance,
    run_noisy_sgd,
)

MEAN, STD, TARGET = np.array([0.2, -0.1]), np.array([0.5, 0.3]), np.array([1.0, 2.0])


def generator() -> np.random.Generator:
    return np.random.Generator(np.random.SFC64(1))


def run(rows: Any, labels: Any, **changes: Any) -> Any:
    options: dict[str, Any] = {
        "records": LinearRecords("gaussian", MEAN, STD, TARGET),
        "initial": np.zeros(2),
        "step_sizes": np.full(len(labels), 0.1),
        "gradient_noise_stds": [0.0],
        "clip_norms": [0.5],
        "rng": generator(),
    }
    return run_noisy_sgd(rows, labels, **{**options, **changes})


@pytest.mark.parametrize("shape", ["uniform", "gaussian"])
def test_samples_are_their_definition(shape: Any) -> None:
    records = LinearRecords(shape, MEAN, STD, TARGET, label_noise_std=0.5, label_noise_clip=0.7)
    features, labels = records.sample(50, generator())
    rng = generator()
    if shape == "uniform":
        unit = rng.uniform(-np.sqrt(3), np.sqrt(3), (50, 2))
    else:
        unit = rng.standard_normal((50, 2))
    assert_allclose(features, MEAN + STD * unit, rtol=1e-12)
    noise = np.clip(rng.standard_normal(50), -0.7, 0.7)
    assert_allclose(labels, features @ TARGET + 0.5 * noise, rtol=1e-12)


def test_label_noise_and_deviations_are_those_asked_for() -> None:
    quiet = LinearRecords("gaussian", MEAN, STD, TARGET)
    assert quiet.clipped_label_noise_std == quiet.risk(TARGET) == 0.0
    noisy = LinearRecords("gaussian", MEAN, STD, TARGET, 0.5, 0.7)
    variance = 0.25 * clipped_normal_variance(0.7)
    assert noisy.clipped_label_noise_std == pytest.approx(np.sqrt(variance))
    assert noisy.risk(TARGET) == pytest.approx(variance / 2)
    records = LinearRecords.uniform(mean=0.1, half_width=0.3, target=TARGET)
    assert_allclose(records.std, 0.3 / np.sqrt(3))
    features, _ = records.sample(400, generator())
    assert 0.29 < np.max(np.abs(features - 0.1)) <= 0.3


@pytest.mark.parametrize("clip", [1e-12, 1e-9, 1e-4])
def test_a_small_clip_of_a_normal_leaves_two_points(clip: float) -> None:
    """All but 2 phi(0) c of the mass lies at ±c; the rest makes a third of its square."""
    lost = 2 * 0.3989422804014327 * clip
    found = clipped_normal_variance(clip) / clip**2
    assert found == pytest.approx(1 - 2 / 3 * lost, abs=lost**2 + 1e-15)
    # Both forms meet.
    below, above = clipped_normal_variance(1 - 1e-13), clipped_normal_variance(1.0)
    assert below == pytest.approx(above, rel=1e-12)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("mean", [0.0, np.nan]),
        ("std", [-1e-9, 0.0]),
        ("label_noise_std", -1e-9),
        ("label_noise_std", np.inf),
        ("label_noise_clip", 0.0),
    ],
)
def test_records_refuse(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"{name} must"):
        LinearRecords(
            **{"shape": "gaussian", "mean": MEAN, "std": STD, "target": TARGET, name: value}
        )


def test_ranges_of_clip_norms() -> None:
    for clip_norm in (1e-12, 1e12, np.inf):
        moved = run([[1.0, 0.0]], [1.0], clip_norms=[clip_norm]).iterate[0, 0, 0]
        assert moved == pytest.approx(0.1 * min(1.0, clip_norm), rel=1e-12, abs=0)
    for wrong in ([[1.0]], [[]], [], [1.0, 0.0]):
        with pytest.raises(ValueError, match="clip_norms must"):
            run([[1.0, 0.0]], [1.0], clip_norms=wrong)


@pytest.mark.parametrize(("row", "label"), [([1.0, 0.0], 1e300), ([1e-60, 0.0], 1e100)])
def test_a_record_of_any_size_moves_its_clipped_gradient(row: Any, label: float) -> None:
    assert run([row], [label]).iterate[0, 0, 0] == pytest.approx(0.05, rel=1e-12)
    for clip_norms in ([np.inf], [0.5, np.inf]):
        with pytest.raises(ValueError, match="features must have rows of length 0 or"):
            run([row], [label], clip_norms=clip_norms)


def test_little_noise_has_a_price_too() -> None:
    """ρ = 2c²/σ²."""
    release = run([[1.0, 0.0]], [1.0], gradient_noise_stds=[0.5]).release()
    assert release.budget.rho == pytest.approx(2.0)


def test_a_row_of_zeros_moves_nothing() -> None:
    """Nor is it taken for one of a size that has to be rescaled, wherever it stands."""
    rows, labels = np.array([[0.0, 0.0], [1.0, 2.0], [0.0, 0.0]]), np.array([3.0, -4.0, 5.0])
    found = run(rows, labels, clip_norms=[np.inf]).iterate
    assert_allclose(found.ravel(), -0.1 * 4.0 * np.array([1.0, 2.0]), rtol=1e-12)
