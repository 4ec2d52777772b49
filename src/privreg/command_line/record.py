"""Files of a fit or a score: its budget is written before noise is drawn."""

from __future__ import annotations

import argparse
import json
import os
import warnings
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from secrets import token_hex
from typing import Any, Self

from privreg.command_line.main import shown
from privreg.estimators.odometer import Odometer

NEW = "a new file that can be written"


class Record(Odometer):
    """Writes what is spent to `--output` before noise is drawn, and the whole result after it.

    Both files are created before noise is drawn, or nothing is spent: of two runs with one output
    the second is refused. As a context, it says of a later error where the budget is recorded.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__()
        self._delta: float = options.delta
        named = {f"--{name}": getattr(options, name, None) for name in ("report", "output")}
        self._files: dict[str, Path] = {name: path for name, path in named.items() if path}
        for name, path in self._files.items():
            # A device, a folder and a link to nothing are there as well.
            there = ", which is there already" if os.path.lexists(path) else ""
            if there or not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
                raise ValueError(f"{name} must be {NEW}, got {str(path)!r}{there}")
        places = {path.parent.resolve() / path.name for path in self._files.values()}
        if len(places) < len(self._files):
            raise ValueError(f"--report must be another file than --output, got {str(path)!r}")

    def add(self, fit: Any) -> None:
        """Count a fit, and create its files."""
        # The token tells one unfinished fit from another.
        known = {"privacy": privacy_as_json(fit, delta=self._delta), "unfinished": token_hex(16)}
        with ExitStack() as undo:
            for name, path in self._files.items():
                try:
                    _write(path, as_text(known) if name == "--output" else "")
                except OSError as error:
                    found = f"{str(path)!r}: {error.strerror}"
                    raise ValueError(f"{name} must be {NEW}, got {found}") from None
                undo.callback(path.unlink)
            super().add(fit)
            undo.pop_all()
        if "--output" not in self._files:
            spent = f"rho = {fit.rho:.4g} is spent and recorded nowhere"
            warnings.warn(f"{spent}: --output would write it to a file", UserWarning, stacklevel=2)

    def finish(self, said: str, **written: Callable[[], str]) -> None:
        """Write the files, by the names of their options; print what is said even if that fails."""
        faults = []
        for name, path in reversed(self._files.items()):
            beside = path.with_name(f".{token_hex(8)}")
            try:
                _write(beside, written[name.removeprefix("--")]())
                beside.replace(path)
            except (OSError, ValueError) as error:
                why = getattr(error, "strerror", None) or error
                faults.append(f"{name} could not be written to {str(path)!r}: {why}")
            finally:
                with suppress(OSError):
                    beside.unlink()
        print(shown(said, "\n"), flush=True)
        if faults:
            raise ValueError("; ".join(faults))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: Any, error: BaseException | None, _: Any) -> None:
        if error is None or not self._costs:
            return
        if output := self._files.get("--output"):
            error.add_note(f"rho = {self.total.rho:.4g} is spent, and recorded in {str(output)!r}")
        with suppress(KeyError, OSError):
            if not (report := self._files["--report"]).stat().st_size:
                report.unlink()


def as_text(value: dict[str, Any]) -> str:
    """JSON as it stands in the files."""
    return json.dumps(value, indent=2) + "\n"


def privacy_as_json(privacy: Any, *, delta: float) -> dict[str, Any]:
    """Privacy statement in plain types, as `privreg odometer` reads it."""
    return {
        "seeded": privacy.seeded,
        "epsilon": finite(privacy.epsilon(delta)),
        "delta": delta,
        "rho": finite(privacy.rho),
        "mu": finite(privacy.mu),
        "unit": privacy.unit,
        "neighbours": privacy.with_secret_noise.neighbours.value,
        "spent": [{"on": what, "rho": budget.rho} for what, budget in privacy.spending],
        "assumptions": list(privacy.assumptions),
    }


def finite(value: float) -> float | None:
    """JSON has no infinity."""
    return float(value) if abs(value) < float("inf") else None


def _write(path: Path, text: str) -> None:
    """Write a new file to the disk, or leave none."""
    with path.open("x", encoding="utf-8") as file:
        try:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        except BaseException:
            path.unlink()
            raise
