# What all rules share: the layout of results, the wildcards, and an environment in which
# `python -m reproduction` is this checkout's package, whichever interpreter or conda environment runs it.
layout = plan.layout
# What a job's artifacts must be. A `params` function of it names `input`, though it needs none:
# Snakemake compares such params with no earlier run's, as what they follow from is compared.
expected = Expected(plan)
# Memory and run time that jobs ask of a cluster, from measured ones.
needs = Needs(plan)


wildcard_constraints:
    paper="|".join(plan.config.blocks),
    book=f"|{STUDIES}",
    experiment="[a-z][a-z0-9_]*",
    dataset="[a-z][a-z0-9_]*",
    figure="[a-z][a-z0-9_]*",
    table="[a-z][a-z0-9_]*",
    claim="[a-z0-9-]+",
    version="[a-z0-9-]+",
    shard=r"\d+",


shell.executable("bash")
shell.prefix(before_each_job)


# What needs the network, or is done in a second by the process that waits: never sent to a cluster.
localrules:
    data,
    summarise,
    figure,
    table,
    judge,
    ledger,
    page,
    gate,
    crate,
    caught,
