"""Tables that the workers of an executor read: the fit that this process makes alone."""

from __future__ import annotations

import io
import multiprocessing
import pickle
import pickletools
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from privreg import Budget, PrivateLinearRegression
from privreg.algorithms.huber_scales import scale_candidates, scale_edges
from privreg.estimators import linear_regression
from privreg.noise.source import Secret

ROWS = 1600


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
    weight = rng.uniform(0, 3, ROWS)
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
@pytest.mark.parametrize("target", ["least_squares", "robust"])
def test_workers_give_the_same_bits(model, folder, target, weight):
    model.set_params(target=target, weight_bound=2.0)
    alone = numbers(model, folder, threads=1, weight=weight)
    np.testing.assert_array_equal(numbers(model, folder, executor=Posted(), weight=weight), alone)


def test_processes_and_threads_are_executors(model, folder):
    alone = numbers(model, folder)
    # Processes of their own: what is inherited by a fork is not sent.
    spawned = ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn"))
    for executor in (spawned, ThreadPoolExecutor(3)):
        with executor:
            np.testing.assert_array_equal(numbers(model, folder, executor=executor), alone)


def test_a_cluster_of_dask_is_one(model, folder):
    distributed = pytest.importorskip("distributed")
    alone = numbers(model, folder)
    local = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with (
        distributed.LocalCluster(processes=False, **local) as cluster,
        distributed.Client(cluster) as client,
    ):
        found = numbers(model, folder, executor=client.get_executor())
    np.testing.assert_array_equal(found, alone)


def opcodes(sent):
    """What a pickle holds, the pickles within it too."""
    found = io.StringIO()
    pickletools.dis(sent, out=found)
    inside = [each for op, each, _ in pickletools.genops(sent) if isinstance(each, bytes)]
    return "".join([found.getvalue(), *map(opcodes, filter(is_pickle, inside))])


def is_pickle(value):
    return value[:1] == b"\x80" and value[-1:] == b"."


def test_noise_is_drawn_here_alone(model, folder, monkeypatch):
    """No generator and no seed is sent, and a fit draws from one stream, which begins once."""
    began = []
    generator = Secret.generator
    monkeypatch.setattr(Secret, "generator", lambda self: began.append(1) or generator(self))
    posted = Posted()
    model.set_params(random_state=None)
    model.fit_table(folder, label="price", executor=posted)
    assert began == [1]
    assert len(posted.sent) > 100
    assert not [each for each in posted.sent if "numpy.random" in opcodes(each)]
    # The check sees a generator where there is one.
    held = pickle.dumps(("task", pickle.dumps(np.random.default_rng(1))))
    assert "numpy.random" in opcodes(held)


def test_rows_stay_where_they_are(model, folder):
    """Answers are sums, of sizes that know the columns alone, and are those of no noise."""
    posted = Posted()
    numbers(model, folder, executor=posted)
    sizes = {np.size(each) for each in posted.answers}
    # Counts of cells; rows of three numbers, their matrices, and histograms of fixed grids; and
    # beside a histogram two sums of rows below, between and above the clips of a fixed grid.
    edges = scale_edges(1.0)
    sums = 2 * 3 * (scale_candidates(edges).size + 1)
    assert max(sizes - {edges.size + 1 + sums}) < 100
    assert 150 not in {each.shape[0] for each in posted.answers if np.ndim(each)}


def test_a_task_carries_its_own_part_alone(model, folder):
    """What is sent does not grow with the number of files."""
    largest = []
    for copies in (0, 12):
        for k in range(copies):
            (folder / f"more{k}.parquet").write_bytes((folder / "0.parquet").read_bytes())
        posted = Posted()
        model.fit_table(folder, label="price", executor=posted)
        largest.append(max(map(len, posted.sent)))
    assert largest[1] < largest[0] + 100


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


def test_others_are_refused_before_anything_is_spent(model, folder):
    for other in (map, object(), 2):
        with pytest.raises(ValueError, match="executor must be") as refused:
            model.fit_table(folder, label="price", executor=other)
        assert not getattr(refused.value, "__notes__", [])
