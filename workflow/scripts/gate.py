from reproduction.engine import stages

stages.run(stages.gate, snakemake)  # noqa: F821
