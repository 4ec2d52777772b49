"""The inner loops of one-pass DP-GD, compiled; `one_pass_dpgd` says what they compute."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from privreg.sums import inner_product


@njit(cache=True, nogil=True)
def draw_and_step(  # type: ignore[no-untyped-def]
    rng,
    eigenvalues,
    deviation,
    label_noise_std,
    step_shape,
    noise_shape,
    bounds,
    amplitude,
    clip_norm,
    record,
    risk_out,
):
    """Gaussian samples drawn in the loop; `deviation` is theta - theta*, shape (settings, d).

    Column i of `step_shape` and `noise_shape` (samples, shapes) is of settings `bounds[i]` up to
    `bounds[i + 1]`. A step without private noise draws no direction.
    """
    settings, dimension = deviation.shape
    scale = np.sqrt(eigenvalues)
    sample = np.empty(dimension)
    direction = np.empty(dimension)
    recorded = 0
    for step in range(len(step_shape) + 1):
        if step > 0:
            for i in range(dimension):
                sample[i] = rng.standard_normal()
            label_noise = label_noise_std * rng.standard_normal()
            if _any_noise(noise_shape[step - 1]):
                for i in range(dimension):
                    direction[i] = rng.standard_normal()
            squared_norm = 0.0
            for i in range(dimension):
                sample[i] *= scale[i]
                squared_norm += sample[i] * sample[i]
            cap = 2 / squared_norm
            norm = math.sqrt(squared_norm)
            for shape in range(step_shape.shape[1]):
                size = step_shape[step - 1, shape]
                noise = noise_shape[step - 1, shape]
                for setting in range(bounds[shape], bounds[shape + 1]):
                    row = deviation[setting]
                    residual = inner_product(sample, row) - label_noise
                    rate = min(amplitude[setting] * size, cap)
                    threshold = clip_norm[setting] / norm
                    move = rate * max(-threshold, min(threshold, residual))
                    if noise > 0:
                        spread = 2 * clip_norm[setting] * amplitude[setting] * noise
                        for i in range(dimension):
                            row[i] += spread * direction[i] - move * sample[i]
                    else:
                        for i in range(dimension):
                            row[i] -= move * sample[i]
        while recorded < len(record) and record[recorded] == step:
            for setting in range(settings):
                row = deviation[setting]
                for i in range(dimension):
                    direction[i] = eigenvalues[i] * row[i]
                risk_out[setting, recorded] = inner_product(direction, row) / 2
            recorded += 1


@njit(inline="always")
def _any_noise(noise_shape):  # type: ignore[no-untyped-def]
    for shape in range(len(noise_shape)):  # noqa: SIM110
        if noise_shape[shape] > 0:
            return True
    return False


@njit(cache=True, nogil=True)
def step_block(  # type: ignore[no-untyped-def]
    gram,
    noise_overlap,
    predictions,
    labels,
    step_shape,
    noise_shape,
    bounds,
    amplitude,
    clip_norm,
    in_range,
    steps_out,
):
    """Moves along each sample of a block.

    `predictions` (sample_size, settings) are those of the parameters before the block; `gram` and
    `noise_overlap` (sample_size, samples) are inner products of samples with samples and with the
    directions of the private noise (no column if the block has none). `step_shape`, `noise_shape`
    and `bounds` are as for `draw_and_step`.

    Returns whether all rows and labels are in the range of `is_within_range`; where not, the
    moves mean nothing.
    """
    sample_size, settings = predictions.shape
    noisy = noise_overlap.shape[1] > 0
    for k in range(sample_size):
        if not in_range and not (1e-100 <= gram[k, k] <= 1e100 and abs(labels[k]) <= 1e110):
            return False
    for k in range(sample_size):
        row = predictions[k]
        for shape in range(step_shape.shape[1]):
            drift = 0.0
            if noisy:
                for j in range(k):
                    drift += noise_shape[j, shape] * noise_overlap[k, j]
            of_shape = slice(bounds[shape], bounds[shape + 1])
            own, norms, amplitudes = row[of_shape], clip_norm[of_shape], amplitude[of_shape]
            for setting in range(len(own)):
                own[setting] += 2 * norms[setting] * amplitudes[setting] * drift - labels[k]
        for j in range(k):
            overlap = gram[k, j]
            moved = steps_out[j]
            for setting in range(settings):
                row[setting] -= overlap * moved[setting]
        squared_norm = gram[k, k]
        if squared_norm > 0:
            cap = 2 / squared_norm
            norm = math.sqrt(squared_norm)
            for shape in range(step_shape.shape[1]):
                size = step_shape[k, shape]
                of_shape = slice(bounds[shape], bounds[shape + 1])
                own, moves = row[of_shape], steps_out[k, of_shape]
                norms, amplitudes = clip_norm[of_shape], amplitude[of_shape]
                for setting in range(len(own)):
                    rate = min(amplitudes[setting] * size, cap)
                    threshold = norms[setting] / norm
                    moves[setting] = rate * max(-threshold, min(threshold, own[setting]))
        else:
            steps_out[k] = 0.0
    return True


@njit(cache=True, nogil=True)
def move_and_perturb(parameters, moves, noise, bounds, scale):  # type: ignore[no-untyped-def]
    """Subtract `moves` from `parameters` (settings, d), and add the noise of a setting's shape.

    `noise` (shapes, d) is that of unit `scale`.
    """
    for shape in range(len(noise)):
        direction = noise[shape]
        for setting in range(bounds[shape], bounds[shape + 1]):
            row, move, spread = parameters[setting], moves[setting], scale[setting]
            for i in range(len(row)):
                row[i] = row[i] - move[i] + spread * direction[i]


@njit(nogil=True)
def _squared_norms(rows, labels, in_range):  # type: ignore[no-untyped-def]
    """Those of all rows, and whether rows and labels are known to be or found in the range."""
    squared_norms = np.empty(len(rows))
    for k in range(len(rows)):
        squared_norms[k] = inner_product(rows[k], rows[k])
        if not in_range and not (1e-100 <= squared_norms[k] <= 1e100 and abs(labels[k]) <= 1e110):
            return squared_norms, False
    return squared_norms, True


@njit(cache=True, nogil=True)
def step_rows(  # type: ignore[no-untyped-def]
    rows,
    labels,
    directions,
    step_shape,
    noise_shape,
    amplitude,
    clip_norm,
    in_range,
    parameters,
):
    """One setting, sample by sample; `parameters` (d,) are moved in place.

    `directions` (sample_size, d) are those of the private noise, of no row if there is none.

    Returns whether all rows and labels are in the range of `is_within_range`; where not,
    nothing is moved.
    """
    squared_norms, within = _squared_norms(rows, labels, in_range)
    if not within:
        return False
    for k in range(len(rows)):
        row = rows[k]
        if squared_norms[k] > 0:
            residual = inner_product(row, parameters) - labels[k]
            rate = min(amplitude * step_shape[k], 2 / squared_norms[k])
            threshold = clip_norm / math.sqrt(squared_norms[k])
            move = rate * max(-threshold, min(threshold, residual))
            for i in range(len(row)):
                parameters[i] -= move * row[i]
        if len(directions) > 0:
            spread = 2 * clip_norm * amplitude * noise_shape[k]
            direction = directions[k]
            for i in range(len(row)):
                parameters[i] += spread * direction[i]
    return True


@njit(cache=True, nogil=True)
def step_narrow_rows(  # type: ignore[no-untyped-def]
    rows,
    labels,
    directions,
    step_shape,
    noise_shape,
    bounds,
    amplitude,
    clip_norm,
    in_range,
    parameters,
):
    """All settings, sample by sample; `parameters` (d, settings) are moved in place.

    `directions` are as for `step_rows`, the other arguments as for `step_block`.

    Returns whether all rows and labels are in the range of `is_within_range`; where not,
    nothing is moved.
    """
    dimension, settings = parameters.shape
    squared_norms, within = _squared_norms(rows, labels, in_range)
    if not within:
        return False
    kick = 2 * clip_norm * amplitude
    moves = np.empty(settings)
    for k in range(len(rows)):
        cap = 2 / squared_norms[k] if squared_norms[k] > 0 else 0.0
        inverse_norm = 1 / math.sqrt(squared_norms[k]) if squared_norms[k] > 0 else 0.0
        moves[:] = -labels[k]
        for i in range(dimension):
            value, own = rows[k, i], parameters[i]
            for setting in range(settings):
                moves[setting] += value * own[setting]
        for shape in range(step_shape.shape[1]):
            size = step_shape[k, shape]
            of_shape = slice(bounds[shape], bounds[shape + 1])
            move, norms, amplitudes = moves[of_shape], clip_norm[of_shape], amplitude[of_shape]
            for setting in range(len(move)):
                threshold = norms[setting] * inverse_norm
                clipped = max(-threshold, min(threshold, move[setting]))
                move[setting] = min(amplitudes[setting] * size, cap) * clipped
            kicks = kick[of_shape]
            for i in range(dimension):
                value, own = rows[k, i], parameters[i, of_shape]
                if len(directions) > 0:
                    spread = noise_shape[k, shape] * directions[k, i]
                    for setting in range(len(own)):
                        own[setting] += kicks[setting] * spread - value * move[setting]
                else:
                    for setting in range(len(own)):
                        own[setting] -= value * move[setting]
    return True


@njit(cache=True, nogil=True)
def isotropic_steps(  # type: ignore[no-untyped-def]
    rng,
    dimension,
    squared_error,
    label_noise_std,
    step_shape,
    noise_shape,
    bounds,
    amplitude,
    clip_norm,
    record,
    risk_out,
):
    """One squared error a setting; a step draws what all settings share.

    `step_shape`, `noise_shape` and `bounds` are as for `draw_and_step`.
    """
    settings = len(amplitude)
    error = np.full(settings, squared_error)
    kick = 2 * clip_norm * amplitude
    squared_kick = kick * kick
    across_spread, rest_spread = _spread(dimension - 1), _spread(dimension - 2)
    first = second = squared_rest = 0.0
    recorded = 0
    for step in range(len(step_shape) + 1):
        if step > 0:
            along = rng.standard_normal()
            squared_across = _chi_square(rng, dimension - 1, across_spread)
            across = math.sqrt(squared_across)
            label_noise = label_noise_std * rng.standard_normal()
            inverse_norm = 1 / math.sqrt(along * along + squared_across)
            cap = 2 * inverse_norm * inverse_norm
            if _any_noise(noise_shape[step - 1]):
                first = rng.standard_normal()
                second = rng.standard_normal()
                squared_rest = _chi_square(rng, dimension - 2, rest_spread)
            for shape in range(step_shape.shape[1]):
                size = step_shape[step - 1, shape]
                noise = noise_shape[step - 1, shape]
                of_shape = slice(bounds[shape], bounds[shape + 1])
                errors, norms = error[of_shape], clip_norm[of_shape]
                amplitudes, kicks = amplitude[of_shape], kick[of_shape]
                if noise > 0:
                    squared_kicks, rest = squared_kick[of_shape], noise * noise * squared_rest
                    for g in range(len(errors)):
                        length = math.sqrt(errors[g])
                        threshold = norms[g] * inverse_norm
                        residual = length * along - label_noise
                        clipped = max(-threshold, min(threshold, residual))
                        move = min(amplitudes[g] * size, cap) * clipped
                        spread = kicks[g] * noise
                        parallel = length - move * along + spread * first
                        crossing = spread * second - move * across
                        squared = parallel * parallel + crossing * crossing
                        errors[g] = squared + squared_kicks[g] * rest
                else:
                    for g in range(len(errors)):
                        length = math.sqrt(errors[g])
                        threshold = norms[g] * inverse_norm
                        residual = length * along - label_noise
                        clipped = max(-threshold, min(threshold, residual))
                        move = min(amplitudes[g] * size, cap) * clipped
                        parallel = length - move * along
                        crossing = move * across
                        errors[g] = parallel * parallel + crossing * crossing
        while recorded < len(record) and record[recorded] == step:
            for g in range(settings):
                risk_out[g, recorded] = error[g] / 2
            recorded += 1


@njit(inline="always")
def _spread(freedom):  # type: ignore[no-untyped-def]
    return math.sqrt(2 / (9 * freedom - 6)) if freedom > 2 else 0.0


@njit(inline="always")
def _chi_square(rng, freedom, spread):  # type: ignore[no-untyped-def]
    """A draw as `rng.chisquare` makes it, without finding its constants again each time.

    Marsaglia and Tsang (2000) cube a Gaussian around 1 and reject; `spread` is its deviation.
    """
    if freedom <= 2:
        return rng.chisquare(freedom)
    centre = freedom / 2 - 1 / 3
    while True:
        x = rng.standard_normal()
        root = 1 + spread * x
        if root > 0:
            cube = root * root * root
            u = rng.random()
            if u < 1 - 0.0331 * (x * x) * (x * x):
                return 2 * centre * cube
            if math.log(u) < x * x / 2 + centre * (1 - cube + math.log(cube)):
                return 2 * centre * cube
