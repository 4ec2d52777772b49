# What all rules share: the plan, the layout of results, the wildcards, and an environment in which
# `python -m reproduction` is this checkout's package, whichever interpreter or conda environment runs it.
import gc
import sys
import time
from pathlib import Path

STARTED = time.monotonic()
SOURCE = Path(workflow.basedir).parent / "src"
sys.path.insert(0, SOURCE.as_posix())

from reproduction.engine.yaml_files import read_mapping
from reproduction.pipeline.closing import books_of, closing_lines
from reproduction.pipeline.closure import code_of
from reproduction.pipeline.config import with_arguments
from reproduction.pipeline.costs import Needs
from reproduction.pipeline.expected import Expected
from reproduction.pipeline.layout import PAPERS, PEERS_FILES, STUDIES
from reproduction.pipeline.opening import guarded, require_usable
from reproduction.pipeline.plan import Plan, assignments, stop_in_one_line
from reproduction.pipeline.registry import paper_files
from reproduction.pipeline.sources import table_source
from reproduction.pipeline.targets import checked
from reproduction.pipeline.terminal import one_line_a_job

# What is imported by here stays: the collector of garbage need not look at it time and again.
gc.freeze()
# No parameter of a rule is a table, to compare which Snakemake would import pandas at each start.
sys.modules.setdefault("pandas", None)
stop_in_one_line(require_usable)(SOURCE)
# Read before Snakemake does, for which two keys of one name are one.
for overlay in ("config/config.yaml", *workflow.config_settings.configfiles):
    stop_in_one_line(read_mapping)(overlay)


configfile: "config/config.yaml"


for paper_file in stop_in_one_line(paper_files)(config):

    configfile: paper_file


plan = stop_in_one_line(Plan)(
    with_arguments(config, workflow.config_settings.config),
    # What a job's own process plans, the run that submits it has checked.
    checked=workflow.is_main_process,
)
before_each_job = plan.environment(
    SOURCE, conda=bool(workflow.deployment_settings.deployment_method)
)
workflow.execute = guarded(workflow, plan.layout, before_each_job)
workflow.execute = checked(workflow, plan)
layout = plan.layout
# What a job's artifacts must be. A `params` function of it names `input`, though it needs none:
# Snakemake compares such params with no earlier run's, as what they follow from is compared.
expected = Expected(plan)
# Memory and run time that jobs ask of a cluster, from measured ones.
needs = Needs(plan)
one_line_a_job(workflow, needs.seconds)


def closing(targets):
    """What a successful run ends with: verdicts, the page to open, minutes."""
    return closing_lines(
        layout,
        seconds=time.monotonic() - STARTED,
        stand_ins=plan.figures_by_table(),
        books=books_of(targets),
    )


wildcard_constraints:
    paper="|".join(plan.config.blocks),
    book=f"|{STUDIES}",
    experiment="[a-z][a-z0-9_]*",
    dataset="[a-z][a-z0-9_]*",
    figure="[a-z][a-z0-9_]*",
    table="[a-z][a-z0-9_]*",
    claim="[a-z0-9-]+",
    version="[a-z0-9-]+",
    shard=r"\d+",


shell.executable("bash")
shell.prefix(before_each_job)


# What needs the network, or is done in a second by the process that waits: never sent to a cluster.
localrules:
    data,
    summarise,
    figure,
    table,
    judge,
    ledger,
    page,
    gate,
    caught,
