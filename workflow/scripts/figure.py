from reproduction.engine import stages

stages.run(stages.figure, snakemake)  # noqa: F821
