from reproduction.engine import stages

stages.run(stages.simulate, snakemake)  # noqa: F821
