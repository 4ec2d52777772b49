from reproduction.engine import stages

stages.run(stages.caught, snakemake)  # noqa: F821
