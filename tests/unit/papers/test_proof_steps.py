"""Recipes that hold the proofs' steps of choquettechoo2024 and anon2024 against exact values."""

from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr

from privreg.noise.tree import tree_shared_nodes
from privreg.theory.shaped_noise.decay import PowerLawDecay
from privreg.theory.shaped_noise.second_moments import private_risk
from reproduction.experiment.quantities import LogAxis, SizeAxis
from reproduction.experiment.trials import shard_of
from reproduction.papers.anon2024 import gaussian_moments, public_features
from reproduction.papers.anon2024.experiments import (
    algorithm_forms,
    exponents,
    gradient_bounds,
    privacy_steps,
    residual_estimates,
)
from reproduction.papers.choquettechoo2024.experiments import (
    decomposition,
    finite_time_steps,
    helper_lemmas,
    special_integrals,
    transfer_functions,
    unclipped_runs,
)

LAM = np.array([1.0, 0.4, 0.1])


def generator(seed=0):
    return np.random.Generator(np.random.SFC64(seed))


def test_without_features_the_tree_s_moments_are_the_law_of_shared_nodes():
    size, eta, shape = 13, 0.3, np.array([1.0, 2.0])
    found = gaussian_moments.tree_moments(np.zeros(2), shape, eta, size)
    ones = tree_shared_nodes(np.arange(size), np.arange(size))
    np.testing.assert_allclose(found, eta**2 * ones[:, None] * shape, rtol=1e-12)


def test_moments_of_the_tree_are_those_of_drawn_runs():
    size, eta, runs = 9, 0.2, 20000
    shape = LAM + 0.5
    rng = generator()
    nodes = rng.standard_normal((size, runs, 3)) * np.sqrt(shape)
    iterate, squares = np.zeros((runs, 3)), np.zeros((size, 3))
    for t in range(1, size):
        x = rng.standard_normal((runs, 3)) * np.sqrt(LAM)
        low = (t & -t).bit_length() - 1
        increment = nodes[t] - sum(nodes[t - (1 << level)] for level in range(low))
        iterate = iterate - eta * x * np.sum(x * iterate, axis=1, keepdims=True) - eta * increment
        squares[t] = np.mean(iterate**2, axis=0)
    exact = gaussian_moments.tree_moments(LAM, shape, eta, size)
    # A chi-squared mean of 20000 draws: 5 standard errors; two thirds is refused.
    np.testing.assert_allclose(squares[1:], exact[1:], rtol=5 * np.sqrt(3 / runs))
    assert np.all(np.abs(squares[1:] * 2 / 3 / exact[1:] - 1) > 0.2)


def test_lemma_b6_is_attained_by_noise_that_is_new_in_every_step():
    # Both sides of the lemma for independent noise differ by half of the diagonal.
    size, eta = 12, 0.2
    moments, path = np.zeros_like(LAM), [np.zeros_like(LAM)]
    for _ in range(size - 1):
        moments = gaussian_moments.transport(moments, LAM, eta) + eta**2
        path.append(moments)
    by_lemma = gaussian_moments.by_averages(LAM, eta, np.array(path))
    diagonal = 0.5 * np.sum(np.array(path) @ LAM) / size**2
    exact = private_risk(
        LAM, covariance=np.ones(3), noise_std=1.0, step_size=eta, sample_size=size,
        decoder=np.append(1.0, np.zeros(size - 1)),
    )  # fmt: skip
    assert by_lemma - diagonal == pytest.approx(exact, rel=1e-12)


def test_leave_one_out_forms_by_leaving_one_out():
    parameters = gradient_bounds.Parameters(
        decay=2.0,
        dimension=6,
        sample_size=4,
        label_noise_std=1.0,
        estimating_rows=3,
        degrees=[1],
        failures={"low": 1e-3, "high": 0.5, "count": 3},
        public_rows=[5],
        horizon=8.0,
    )
    found = gradient_bounds._least_form(parameters, 5, generator(2))
    normals, lam, ridge = generator(2).standard_normal((5, 6)), parameters.eigenvalues, 5 / 8.0
    forms = []
    for i in range(6):
        others = [j for j in range(6) if j != i]
        matrix = np.eye(5) + (normals[:, others] * lam[others] / ridge) @ normals[:, others].T
        forms.append(normals[:, i] @ np.linalg.solve(matrix, normals[:, i]))
    place = next(k for k in range(7) if (lam[k] if k < 6 else 0) * 5 <= ridge + lam[k:].sum())
    bound = ridge * 5 / (ridge + lam[place:].sum())
    assert found == pytest.approx(min(forms) / bound, rel=1e-10)


def test_sums_of_the_printed_tree():
    parameters = algorithm_forms.Parameters(
        sample_size=29, dimension=2, step_size=0.3, noise_multiplier=0.3, clip_norm=1.5,
        largest_size=29,
    )  # fmt: skip
    assert algorithm_forms.prefix_error(parameters, "from 1") == 0
    assert algorithm_forms.prefix_error(parameters, "from 0") == 1
    assert algorithm_forms.unlisted_covariance(parameters) == 0
    assert algorithm_forms.listed_covariance(parameters) == -1
    terms, _ = algorithm_forms._terms(29)
    np.testing.assert_array_equal(terms, 1 + algorithm_forms._listed(29).sum(axis=0))


@pytest.mark.parametrize(("leaves", "longest"), [(1, 1), (2, 2), (3, 3), (4, 3), (5, 4), (300, 10)])
def test_longest_paths_of_complete_trees(leaves, longest):
    nodes = 2 ** (int(np.ceil(np.log2(leaves))) + 1) - 1
    assert algorithm_forms._longest_path(leaves, nodes) == longest


def test_traces_by_leave_one_out_forms():
    rng, lam, ridge = generator(3), np.array([1.0, 0.3, 0.05, 0.01]), 0.025
    normals = rng.standard_normal((3, 4))
    forms = public_features.forms(lam, normals, ridge)
    features = normals * np.sqrt(lam)
    shape = (ridge * np.eye(4) + features.T @ features) / 3
    exact = np.trace(np.linalg.solve(shape, np.diag(lam)))
    assert 3 * np.sum(lam / (ridge + lam * forms)) == pytest.approx(exact, rel=1e-10)
    assert public_features.cutoff(lam, 3, ridge) == (3, 0.01)


def test_an_estimate_on_the_edge_of_a_bin_is_exactly_twice_the_truth():
    estimates = [[[np.sqrt(2.0) ** 2], [2.001]]]
    private = xr.DataArray(estimates, dims=("reading", "truth", "trial"))
    found = residual_estimates.private_at_most_twice(xr.Dataset({"private": private}))
    assert found.ravel().tolist() == [1.0, 0.0]


def test_chances_of_two_noisy_counts():
    first, second = generator().laplace(0, 2, (2, 200000))
    for gap in (-3, 0, 4):
        share = np.mean(first + gap > second)
        exact = privacy_steps._chance(gap, 0, 1.0)
        assert abs(share - exact) < 5 * np.sqrt(exact * (1 - exact) / first.size)


@pytest.mark.parametrize("decay", [1.5, 3.0, 5.0])
def test_no_weight_is_better_than_the_best(decay):
    law, sizes = PowerLawDecay(decay), SizeAxis(low=1e16, high=1e24, count=3)
    best = [found.value for found in exponents._minima("weighted", law, sizes)]
    printed = [found.value for found in exponents._minima("designed", law, sizes)]
    # The printed bound drops terms of lower order, which the constant covers.
    assert np.all(np.array(best) <= 3 * np.array(printed))


def test_exact_covariances_are_those_of_drawn_features():
    eta, rng = 0.1, generator(1)
    x = rng.standard_normal((400000, 3)) * np.sqrt(LAM)
    matrix = np.diag([0.7, 0.2, 1.3])
    steps = np.einsum("ni,nj->nij", x, x @ matrix)
    moved = np.mean(np.einsum("nij,nj,nk->nik", steps, x, x), axis=0)
    exact = 2 * LAM**2 * np.diag(matrix) + LAM * (LAM @ np.diag(matrix))
    np.testing.assert_allclose(np.diag(moved), exact, rtol=0.05)
    transported = finite_time_steps.transported(LAM, eta, np.diag(matrix))
    direct = np.diag(matrix) - 2 * eta * LAM * np.diag(matrix) + eta**2 * exact
    np.testing.assert_allclose(transported, direct, rtol=1e-12)


def test_bounds_are_of_the_printed_order_and_a_smaller_constant_fails():
    parameters = decomposition.Parameters(
        dimension=3, decay=1.0, step_shares=[0.9], orders=3, label_noise_std=0.3, sequence_steps=3
    )
    found = decomposition.theory(parameters)
    for name in ("base", "orders", "drive", "response", "remainder"):
        assert np.all(found[name] < 1), name
    # Half of the bound of C.10 would be broken by every direction.
    assert np.all(found.base > 0.5)
    assert found.correlation_of_parts < 1e-14


def test_only_one_sign_of_the_transform_answers():
    parameters = SimpleNamespace(
        eigenvalues=np.array([1.0, 0.5]), step_size=0.2, damping=0.1, frequencies=[0.3, 1.0]
    )
    plus, minus = transfer_functions.noise_response_error(parameters)
    assert minus < 1e-10 < 0.1 < plus


def test_integrals_of_the_third_kind_where_they_are_elementary():
    # Pi(0, k) = K(k), and at k = 0 it is pi/2 over the root of 1 - n.
    assert special_integrals.complete_third(0.5, 0.0) == pytest.approx(np.pi / 2 / np.sqrt(0.5))
    assert special_integrals.complete_third(0.0, 0.0) == pytest.approx(np.pi / 2)
    parameters = SimpleNamespace(cutoffs=LogAxis(low=1e-8, high=1e-2, count=4))
    assert special_integrals.divergence_slope(parameters) == pytest.approx(2**1.5, abs=1e-4)


def test_half_exponential_decay_has_a_closed_form():
    found = helper_lemmas.decay(0.01)
    constant, squared = found["half_exponential_constant"], found["coefficient_sum"]
    assert constant == pytest.approx(2 - np.sqrt(1 - np.sqrt(0.99)), rel=1e-6)
    assert squared == pytest.approx((2 - np.sqrt(0.01)) ** 2, rel=1e-6)


def test_runs_without_clipping_do_not_depend_on_shards():
    parameters = unclipped_runs.Parameters(
        dimension=2, decay=1.0, step_counts=[5, 8], failure_probability=0.1,
        label_noise_stds=[0.5, 5.0], gradient_noise_std=1.0, rho=0.5,
    )  # fmt: skip
    whole = unclipped_runs.simulate(parameters, shard_of(1, "x/y", 2, index=0, count=1))
    parts = [
        unclipped_runs.simulate(parameters, shard_of(1, "x/y", 2, index=i, count=2))
        for i in range(2)
    ]
    for name, values in whole.data_vars.items():
        joined = np.concatenate([part[name].values for part in parts])
        np.testing.assert_array_equal(joined, values.values)
    # The label part is in proportion to the label noise, so that its ratio to a bound that is does
    # not change.
    label = whole.bound.sel(quantity="label part")
    np.testing.assert_allclose(
        label.sel(label_noise_std=0.5), label.sel(label_noise_std=5.0), rtol=1e-9
    )
