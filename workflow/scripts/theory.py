from reproduction.engine import stages

stages.run(stages.theory, snakemake)  # noqa: F821
