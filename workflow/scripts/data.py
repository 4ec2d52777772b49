from reproduction.engine import stages

stages.run(stages.data, snakemake)  # noqa: F821
