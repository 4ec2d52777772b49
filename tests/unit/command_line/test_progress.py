"""Progress on long tables: for a terminal, after some seconds, of nothing but numbers of rows."""

from __future__ import annotations

import io

import numpy as np
import pyarrow as pa

from privreg.command_line import tables
from privreg.command_line.tables import PATIENCE, Watched
from privreg.estimators.tables import Table


class Batches:
    """A table of two parts of two batches."""

    schema = pa.schema([("x", pa.float64()), ("y", pa.float64())])
    row_count = 400

    def parts(self, names):
        def read(start):
            for begin in (start, start + 100):
                cells = pa.array(np.arange(begin, begin + 100) / 400)
                yield pa.record_batch([cells for _ in names], names=list(names))

        return [lambda start=start: read(start) for start in (0, 200)]


class Terminal(io.StringIO):
    def __init__(self, *, terminal):
        super().__init__()
        self.terminal = terminal

    def isatty(self):
        return self.terminal


def shown(monkeypatch, *, terminal, step=1.0):
    """What two passes write while the clock goes on by a second at each look."""
    times = iter(np.arange(1e4) * step)
    monkeypatch.setattr(tables, "monotonic", lambda: next(times))
    stream = Terminal(terminal=terminal)
    monkeypatch.setattr("sys.stderr", stream)
    assert isinstance(Watched(Batches(), "fit"), Table)
    with Watched(Batches(), "privreg fit") as table:
        for _ in range(2):
            found = [batch for part in table.parts(["x"]) for batch in part()]
        assert found == [batch for part in Batches().parts(["x"]) for batch in part()]
    return stream.getvalue()


def test_a_terminal_sees_pass_and_share_after_some_seconds(monkeypatch):
    lines = shown(monkeypatch, terminal=True).split("\r")
    # Four batches a pass, one second each: the first lines would be those of the first seconds.
    assert lines[1] == "privreg fit: pass 1, 75 %, 3 s"
    assert lines[2].rstrip() == "privreg fit: pass 2, 0 %, 4 s"
    # The last is taken away.
    assert lines[-2].strip() == lines[-1] == ""
    assert len(lines[-2]) >= max(map(len, lines))
    # Nothing is written to files, or of short runs.
    assert shown(monkeypatch, terminal=False) == ""
    assert shown(monkeypatch, terminal=True, step=PATIENCE / 100) == ""
