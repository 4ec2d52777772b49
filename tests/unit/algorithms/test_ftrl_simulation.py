"""Simulated FTRL against a plain loop over the same draws, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from privreg.algorithms.ftrl_simulation import simulate_ftrl

STEPS = 14


def generator(seed: int = 1) -> np.random.Generator:
    return np.random.Generator(np.random.SFC64(seed))


def plain_loop(scales, rng, *, error, eta, zeta, clip, sigma, decoder):
    """Risks after 0..T steps and the number of clipped gradients of one run."""
    d = scales.size
    noise = np.zeros((STEPS, d))
    if sigma > 0:
        # Sixteen columns are drawn at a time.
        white = np.hstack(
            [sigma * rng.standard_normal((STEPS, min(16, d - left))) for left in range(0, d, 16)]
        )
        for lag, weight in enumerate(decoder):
            noise[lag:] += weight * white[: STEPS - lag]
    risks, clipped = [0.5 * np.sum((scales * error) ** 2)], 0
    for kick in noise:
        sample = scales * rng.standard_normal(d)
        gradient = sample * (sample @ error - zeta * rng.standard_normal())
        length = np.linalg.norm(gradient)
        clipped += length > clip
        error = error - eta * (gradient * min(1.0, clip / length) + kick)
        risks.append(0.5 * np.sum((scales * error) ** 2))
    return np.array(risks), clipped


@pytest.mark.parametrize("clip", [0.8, np.inf])
@pytest.mark.parametrize("sigma", [0.0, 0.4])
@pytest.mark.parametrize("burn_in", [0, 5, STEPS])
def test_runs_equal_a_plain_loop(clip: float, sigma: float, burn_in: int) -> None:
    eigenvalues = np.linspace(0.2, 1.5, 18)
    options = {"decoder": [1.0, -0.5, 0.0, 0.25], "start": np.full(18, 0.3)}
    record = [0, 3, STEPS]
    found = simulate_ftrl(
        eigenvalues,
        step_size=0.07,
        decoder=options["decoder"],
        gradient_noise_std=sigma,
        label_noise_std=0.3,
        clip_norm=clip,
        initial_error=options["start"],
        steps=STEPS,
        burn_in=burn_in,
        record=record,
        runs=2,
        rng=generator(),
    )
    rng = generator()
    for run in range(2):
        risks, clipped = plain_loop(
            np.sqrt(eigenvalues),
            rng,
            error=options["start"],
            eta=0.07,
            zeta=0.3,
            clip=clip,
            sigma=sigma,
            decoder=options["decoder"],
        )
        np.testing.assert_allclose(found.risks[run], risks[record], rtol=1e-10)
        assert found.averages[run] == pytest.approx(np.mean(risks[burn_in:]), rel=1e-10)
        assert found.clipped_fraction[run] == clipped / STEPS
        assert (0 < clipped < STEPS) == np.isfinite(clip)


def test_without_noise_or_labels_the_last_risk_alone_is_recorded() -> None:
    found = simulate_ftrl(
        [1.0, 0.0], step_size=0.1, decoder=[1.0], gradient_noise_std=0.0, steps=3, rng=generator()
    )
    assert found.risks.shape == (1, 1)
    assert found.averages.shape == (1,)
    # From an error of 0, without label noise, nothing moves.
    assert found.risks[0, 0] == found.averages[0] == found.clipped_fraction[0] == 0


def test_an_unstable_run_is_infinite() -> None:
    found = simulate_ftrl(
        np.full(4, 1e30),
        step_size=1e30,
        decoder=[1.0],
        gradient_noise_std=1e30,
        steps=STEPS,
        record=[1, STEPS],
        rng=generator(),
    )
    assert found.risks[0, 1] == found.averages[0] == np.inf
    assert not np.any(np.isnan(found.risks))


GOOD = {"step_size": 0.1, "decoder": [1.0], "gradient_noise_std": 0.1, "steps": STEPS}


@pytest.mark.parametrize(
    ("name", "taken", "refused"),
    [
        ("eigenvalues", [[0.0]], [[-1e-9], [1.1e50]]),
        ("step_size", [], [0.0, 1.1e50]),
        ("gradient_noise_std", [0.0], [-1e-9, 1.1e50]),
        ("label_noise_std", [0.0], [-1e-9, 1.1e50]),
        ("decoder", [np.ones(STEPS)], [[-1.1e50], [1.1e50], np.ones(STEPS + 1)]),
        ("clip_norm", [1e-50], [0.0, 1e-51, [1.0]]),
        ("initial_error", [[-1e40]], [[1.1e40], [-1.1e40], [0.0, 0.0]]),
        ("burn_in", [STEPS], [-1, STEPS + 1]),
        (
            "record",
            [[0], [STEPS], np.arange(STEPS + 1)],
            [[], [1, 1], [2, 1], [-1], [STEPS + 1], [[1]]],
        ),
        ("steps", [1], [0]),
        ("runs", [1], [0]),
        ("rng", [], [np.random.RandomState(0)]),
    ],
)
def test_takes_the_ends_of_its_ranges_and_no_more(name, taken, refused):
    for value in taken:
        found = simulate_ftrl(**{"eigenvalues": [1.0], **GOOD, "rng": generator(), name: value})
        assert not np.any(np.isnan(found.risks))
    for value in refused:
        with pytest.raises(ValueError, match=name):
            simulate_ftrl(**{"eigenvalues": [1.0], **GOOD, "rng": generator(), name: value})
