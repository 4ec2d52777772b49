from reproduction.engine import stages

stages.run(stages.claim, snakemake)  # noqa: F821
