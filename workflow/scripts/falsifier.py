from reproduction.engine import stages

stages.run(stages.falsifier, snakemake)  # noqa: F821
