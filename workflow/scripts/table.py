from reproduction.engine import stages

stages.run(stages.table, snakemake)  # noqa: F821
