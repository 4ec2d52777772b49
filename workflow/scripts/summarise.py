from reproduction.engine import stages

stages.run(stages.summarise, snakemake)  # noqa: F821
