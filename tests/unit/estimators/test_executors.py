"""Tables that the workers of an executor read: the fit that this process makes alone."""

from __future__ import annotations

import multiprocessing
import pickle
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from privreg import Budget, PrivateLinearRegression
from privreg.algorithms import whitened_descent
from privreg.estimators import linear_regression
from privreg.privacy.release import Secret

ROWS = 1600
pytestmark = pytest.mark.filterwarnings("ignore:records are left out", "ignore:bounds clip")


class Posted(Executor):
    """One worker that is sent everything as bytes, which are kept."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.answers: list[object] = []

    def submit(self, task, /, *arguments, **named):
        self.sent.append(pickle.dumps((task, arguments)))
        task, arguments = pickle.loads(self.sent[-1])
        self.answers.append(task(*arguments))
        found: Future = Future()
        found.set_result(pickle.loads(pickle.dumps(self.answers[-1])))
        return found


@pytest.fixture
def folder(rng, tmp_path):
    size = rng.uniform(20, 200, ROWS)
    place = rng.choice(["town", "coast"], ROWS)
    price = 2 * size + 80 * (place == "coast") + rng.normal(0, 20, ROWS)
    size[::100] = np.nan
    weight = rng.uniform(0, 2.04, ROWS)
    table = pa.table({"price": price, "size": size, "place": place, "weight": weight})
    for k in range(4):
        part = table.slice(k * ROWS // 4, ROWS // 4)
        parquet.write_table(part, tmp_path / f"{k}.parquet", row_group_size=150)
    return tmp_path


@pytest.fixture
def model(monkeypatch):
    monkeypatch.setattr(linear_regression, "HELD_NUMBERS", 0)
    return PrivateLinearRegression(
        Budget.zcdp(5.0),
        feature_bounds={"size": (0, 250), "place": {"categories": ["town", "coast"]}},
        label_bounds=(0, 900),
        random_state=1,
    )


def numbers(model, folder, **options):
    fit = model.fit_table(folder, label="price", **options)
    shares = [*fit.quality_.incomplete.values(), *fit.quality_.clipped.values()]
    return np.array([*fit.coef_, fit.intercept_, *shares, *fit.confidence_intervals().length])


@pytest.mark.parametrize("weight", [None, "weight"])
@pytest.mark.parametrize("target", ["least_squares", "huber"])
def test_workers_give_the_same_bits(model, folder, target, weight):
    model.set_params(target=target, weight_bound=2.0)
    alone = numbers(model, folder, threads=1, weight=weight)
    np.testing.assert_array_equal(numbers(model, folder, executor=Posted(), weight=weight), alone)


@contextmanager
def dask():
    distributed = pytest.importorskip("distributed")
    local = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with (
        distributed.LocalCluster(processes=False, **local) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client.get_executor()


# Processes of their own: what is inherited by a fork is not sent.
SPAWNED = partial(ProcessPoolExecutor, 2, multiprocessing.get_context("spawn"))


@pytest.mark.parametrize("executors", [SPAWNED, partial(ThreadPoolExecutor, 3), dask])
def test_processes_threads_and_dask_are_executors(model, folder, executors):
    alone = numbers(model, folder)
    with executors() as executor:
        np.testing.assert_array_equal(numbers(model, folder, executor=executor), alone)


def test_noise_is_drawn_here_alone(model, folder, monkeypatch):
    """No generator and no seed is sent, and a fit's noise is secure bits, drawn between passes."""
    drawn = []
    normals = whitened_descent.rounded_normals

    def counted(shape, *, std):
        drawn.append(len(posted.sent))
        return normals(shape, std=std)

    monkeypatch.setattr(Secret, "generator", None)
    monkeypatch.setattr(whitened_descent, "rounded_normals", counted)
    posted = Posted()
    model.set_params(random_state=None)
    model.fit_table(folder, label="price", executor=posted)
    assert len(drawn) > 10
    assert len(posted.sent) > 100
    assert {each % 12 for each in drawn} == {0}
    # Pickles within pickles hold names as they are.
    for name in (b"numpy.random", b"rounded_normals", b"secrets"):
        assert not [each for each in posted.sent if name in each]
    assert b"numpy.random" in pickle.dumps(("task", pickle.dumps(np.random.default_rng(1))))


def test_rows_stay_where_they_are(model, folder):
    """Answers are sums, of sizes that know the columns alone; a task carries its own part alone."""
    posted = Posted()
    numbers(model, folder, executor=posted)
    sizes = {np.size(each) for each in posted.answers}
    # Counts of cells; rows of three numbers, their matrices, and histograms of fixed grids.
    assert max(sizes) < 100
    assert 150 not in {each.shape[0] for each in posted.answers if np.ndim(each)}
    for k in range(8):
        (folder / f"more{k}.parquet").write_bytes((folder / "0.parquet").read_bytes())
    more = Posted()
    numbers(model, folder, executor=more)
    assert max(map(len, more.sent)) < max(map(len, posted.sent)) + 100


def test_a_failing_worker_leaves_the_object_and_says_what_is_spent(model, folder):
    class Failing(Posted):
        def submit(self, task, /, *arguments, **named):
            if len(self.sent) == 30:
                raise RuntimeError("a worker was lost")
            return super().submit(task, *arguments, **named)

    model.set_params(random_state=None)
    fit = model.fit_table(folder, label="price")
    before = fit.coef_.copy()
    with pytest.raises(RuntimeError, match="a worker was lost") as failed:
        fit.fit_table(folder, label="price", executor=Failing())
    assert "counts as spent" in failed.value.__notes__[0]
    np.testing.assert_array_equal(fit.coef_, before)
    with pytest.raises(ValueError, match="executor must be") as refused:
        fit.fit_table(folder, label="price", executor=map)
    assert not hasattr(refused.value, "__notes__")
