from reproduction.engine import stages

stages.run(stages.ledger, snakemake)  # noqa: F821
