# Five papers on private linear regression: data, theory, simulation, intervals, figures, claims.
#
#   snakemake all                                        everything
#   snakemake bombari2025                                one paper
#   snakemake claims                                     the ledger of claims
#   snakemake results/figures/bombari2025/fig1.pdf       one figure and what it needs
#   snakemake all --configfile config/quick.yaml         the same, made small
import sys
from pathlib import Path

from snakemake.utils import min_version

min_version("9.13")
SOURCE = Path(workflow.basedir, "src")
sys.path.insert(0, SOURCE.as_posix())

from privreg.papers.registry import paper_files
from privreg.plan import Plan, stop_in_one_line


configfile: "config/config.yaml"


for paper_file in stop_in_one_line(paper_files)(config):

    configfile: paper_file


plan = stop_in_one_line(Plan)(config)


include: "workflow/rules/common.smk"
include: "workflow/rules/data.smk"
include: "workflow/rules/theory.smk"
include: "workflow/rules/simulation.smk"
include: "workflow/rules/intervals.smk"
include: "workflow/rules/figures.smk"
include: "workflow/rules/claims.smk"


rule all:
    default_target: True
    input:
        plan.figures(),
        plan.tables(),
        "results/claims.html",
        "results/gate.txt",


rule claims:
    input:
        "results/claims.html",


for paper in plan.config.papers:

    rule:
        name:
            paper
        input:
            plan.figures(paper),
            plan.tables(paper),
            plan.claims(paper),
