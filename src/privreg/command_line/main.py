"""`privreg COMMAND …`: what a user asks on the command line.

A command is a module beside this one with `SUMMARY`, `add_arguments(parser)` and `run(options)`,
which returns the text to print, or prints it.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import warnings
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

from privreg.version import __version__

COMMANDS = ("predict", "plan", "bounds", "fit", "score", "odometer")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] and words[0] not in (*COMMANDS, "-h", "--help", "--version"):
        near = get_close_matches(words[0], COMMANDS, n=1, cutoff=0.75)
        meant = f"; did you mean {near[0]!r}?" if near else ""
        listed = ", ".join(COMMANDS)
        print(
            f"privreg: the command must be one of {listed}, got {words[0]!r}{meant}",
            file=sys.stderr,
        )
        return 2
    # Imported for the command that is asked for alone, so that `--help` is quick.
    wanted = [name for name in COMMANDS if words[:1] == [name]] or COMMANDS
    parser = argparse.ArgumentParser(
        prog="privreg",
        description="Private linear regression: predict and plan a run before it is made, and fit.",
        epilog="`privreg COMMAND --help` lists the options of a command.",
    )
    parser.add_argument("--version", action="version", version=f"privreg {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name in wanted:
        module = importlib.import_module(f"privreg.command_line.{name}")
        added = commands.add_parser(name, help=module.SUMMARY, description=module.SUMMARY)
        module.add_arguments(added)
        added.set_defaults(run=module.run)
    options = parser.parse_args(words)

    def say(text: Any, *_: object, **__: object) -> None:
        print(f"privreg {options.command}: {shown(str(text))}", file=sys.stderr)

    with warnings.catch_warnings():
        # A warning that a shell makes an error would end a fit that is paid for.
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = lambda message, *_, **__: say(f"warning: {message}")
        try:
            if text := options.run(options):
                print(shown(text, "\n"), flush=True)
        except (ValueError, OSError, ImportError) as error:
            # Notes say what a fit that failed has spent.
            say("; ".join([str(error), *getattr(error, "__notes__", ())]))
            return 1
    return 0


def shown(text: str, kept: str = "") -> str:
    """A text in which characters that a terminal obeys are escaped, but those that are kept."""
    return "".join(
        each if each.isprintable() or each in kept else repr(each)[1:-1] for each in text
    )


if __name__ == "__main__":
    sys.exit(main())
