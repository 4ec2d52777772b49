"""`python -m reproduction`: one stage of the workflow in a process of its own."""

import sys

from reproduction.pipeline.handover import handed_over

# pandas takes it wherever it is installed, a tenth of a job's start; no stage reads Parquet.
sys.modules.setdefault("pyarrow", None)  # type: ignore[arg-type]


def run() -> int:
    """Run one stage; returns the exit status."""
    status = handed_over(sys.argv[1:])
    if status is not None:
        return status
    # Imported here: a job that is handed over needs none of it.
    from privreg.__main__ import kept_modules
    from reproduction.pipeline import cli

    with kept_modules():
        return cli.main()


if __name__ == "__main__":
    sys.exit(run())
