from reproduction.engine import stages

stages.run(stages.intervals, snakemake)  # noqa: F821
