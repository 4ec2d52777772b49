# Shared by all rules: the plan, the wildcards, and an environment in which jobs import this checkout.
import os
import sys
import time
from pathlib import Path

STARTED = time.time()
if not isinstance(workflow.current_basedir, (str, os.PathLike)):
    sys.exit(
        "error: the workflow runs from a clone of the repository; give the path of its Snakefile"
    )
HERE = Path(workflow.current_basedir).parents[1]
SOURCE = str(HERE / "src")
sys.path.insert(0, SOURCE)

try:
    from privreg.version import __version__
    from reproduction.engine.closing import closing
    from reproduction.engine.code import code_of, digest_of_folder
    from reproduction.engine.plan import Plan, looked_for_in
    from reproduction.engine.processor import prepare_environment
except ModuleNotFoundError as error:
    sys.exit(
        f"error: {error.name} is missing in this environment: use that of environment.yml, or .venv "
        "after `make setup`"
    )


# For `--software-deployment-method apptainer`: the image that a release publishes.
container: f"docker://ghcr.io/privreg/privreg:{__version__}"


# For --configfile, --config and the report; the plan reads and checks all files.
configfile: str(HERE / "config/config.yaml")


try:
    plan = Plan(HERE / "config", config)
except ValueError as error:
    sys.exit(f"error: {error}")

# Folder of all results, which --config results=... changes.
ROOT = plan.root
# Jobs inherit the environment; those on a cluster read this file again.
prepare_environment(SOURCE)


def ledger_files(*papers):
    """Files of ledgers, of which a module's prefix says nothing."""
    return [local(each) for each in plan.ledger_files(*papers)]


wildcard_constraints:
    paper="|".join(plan.config.blocks),
    # Folder of a page and its gate: none for the papers.
    book="|studies/",
    dataset="|".join(plan.config.data),
    # Any name, since the plan answers an unknown one with the nearest.
    experiment=r"\w+",
    figure=r"\w+",
    table=r"\w+",
    claim="[a-z0-9-]+",
    version="[a-z0-9-]+",
    shard=r"\d+",
