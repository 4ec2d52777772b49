from reproduction.engine import stages

stages.run(stages.simulation, snakemake)  # noqa: F821
