# Papers on private linear regression: data, theory, simulation, intervals, figures, claims.
#
#   snakemake all                                        the papers
#   snakemake studies                                    what the library promises itself
#   snakemake bombari2025                                one paper
#   snakemake claims                                     the ledger of the papers
#   snakemake results/figures/bombari2025/fig1.pdf       one figure and what it needs
#   snakemake all --configfile config/quick.yaml         the papers, made small, in results/quick
import gc
import sys
import time
from pathlib import Path

from snakemake.utils import min_version

min_version("9.13")
STARTED = time.monotonic()
SOURCE = Path(workflow.basedir, "src")
sys.path.insert(0, SOURCE.as_posix())

from reproduction.experiment.yaml_files import read_mapping
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


report: "workflow/report/workflow.rst"


include: "workflow/rules/common.smk"
include: "workflow/rules/data.smk"
include: "workflow/rules/theory.smk"
include: "workflow/rules/simulation.smk"
include: "workflow/rules/intervals.smk"
include: "workflow/rules/figures.smk"
include: "workflow/rules/claims.smk"
include: "workflow/rules/peers.smk"


one_line_a_job(workflow, needs.seconds)


rule all:
    """Every figure, table and claim of every paper, and the gate."""
    default_target: True
    input:
        plan.built(PAPERS),
        layout.crate(),


rule studies:
    """Every figure and entry of what the library promises itself, and their gate."""
    input:
        plan.built(STUDIES),


rule falsify:
    """Deliberate mistakes, each of which named entries must notice."""
    input:
        layout.caught(),


rule claims:
    """The ledger of the papers."""
    input:
        layout.page(PAPERS),


for paper in plan.config.papers:

    rule:
        name:
            paper
        input:
            plan.figures(paper),
            plan.tables(paper),
            lambda w, paper=paper: plan.ledgers.verdicts(paper),


onsuccess:
    seconds = time.monotonic() - STARTED
    print(
        *closing_lines(
            layout,
            seconds=seconds,
            stand_ins=plan.figures_by_table(),
            books=books_of(workflow.dag_settings.targets),
        ),
        sep="\n",
    )
