from reproduction.engine import stages

stages.run(stages.page, snakemake)  # noqa: F821
