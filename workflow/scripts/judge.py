from reproduction.engine import stages

stages.run(stages.judge, snakemake)  # noqa: F821
