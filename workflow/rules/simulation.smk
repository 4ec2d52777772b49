# Needs   an experiment's parameters, trials and seed; for some its theory and a table.
# Makes   simulation/<paper>/<experiment>.nc, from <experiment>/<shard>.nc
# Steps   simulate each shard of the trials; join them and summarise over the trials; both in one
#         job where there is one shard.
ruleorder: simulation > simulate
ruleorder: simulation > summarise


rule simulate:
    """Simulate one shard of an experiment's trials."""
    input:
        unpack(lambda w: plan.reads(w.paper, w.experiment, "simulate")),
    output:
        f"{ROOT}/simulation/{{paper}}/{{experiment}}/{{shard}}.nc",
    log:
        f"{ROOT}/logs/simulation/{{paper}}/{{experiment}}/{{shard}}.log",
    benchmark:
        f"{ROOT}/benchmarks/simulation/{{paper}}/{{experiment}}/{{shard}}.tsv"
    # Long jobs, and those that they wait for, before the many short ones.
    priority: 1
    conda:
        "../../environment.yml"
    resources:
        mem_mb=plan.memory_mb,
        runtime=plan.minutes,
    params:
        recipe=lambda w: plan.recipe(w.paper, w.experiment).name,
        parameters=lambda w: plan.parameters[w.paper, w.experiment],
        settings=lambda w: plan.settings(w.paper, w.experiment),
        code=lambda w: plan.code(w.paper, w.experiment),
        draws=lambda w: plan.draws(w.paper, w.experiment),
        shards=lambda w: plan.experiments[w.paper, w.experiment].shards,
    message:
        "Simulation: {wildcards.paper}/{wildcards.experiment}, shard {wildcards.shard}"
    script:
        "../scripts/simulate.py"


rule summarise:
    """Join an experiment's shards and summarise them over the trials."""
    input:
        unpack(lambda w: plan.reads(w.paper, w.experiment, "summarise")),
        shards=lambda w: plan.shards(w.paper, w.experiment),
    output:
        f"{ROOT}/simulation/{{paper}}/{{experiment}}.nc",
    log:
        f"{ROOT}/logs/simulation/{{paper}}/{{experiment}}.log",
    benchmark:
        f"{ROOT}/benchmarks/simulation/{{paper}}/{{experiment}}.tsv"
    localrule: True
    conda:
        "../../environment.yml"
    resources:
        mem_mb=lambda wildcards, attempt: 1000 * attempt,
        runtime=lambda wildcards, attempt: 10 * attempt,
    params:
        recipe=lambda w: plan.recipe(w.paper, w.experiment).name,
        parameters=lambda w: plan.parameters[w.paper, w.experiment],
        settings=lambda w: plan.settings(w.paper, w.experiment),
        code=lambda w: plan.code(w.paper, w.experiment),
    message:
        "Summary: {wildcards.paper}/{wildcards.experiment}"
    script:
        "../scripts/summarise.py"


rule simulation:
    """Simulate all trials of an experiment that are one shard, and summarise them."""
    input:
        unpack(lambda w: plan.reads(w.paper, w.experiment, "simulate", "summarise")),
    output:
        shard=f"{ROOT}/simulation/{{paper}}/{{experiment}}/0.nc",
        summary=f"{ROOT}/simulation/{{paper}}/{{experiment}}.nc",
    log:
        f"{ROOT}/logs/simulation/{{paper}}/{{experiment}}.log",
    benchmark:
        f"{ROOT}/benchmarks/simulation/{{paper}}/{{experiment}}.tsv"
    wildcard_constraints:
        experiment=plan.at_once(),
    priority: 1
    conda:
        "../../environment.yml"
    resources:
        mem_mb=plan.memory_mb,
        runtime=plan.minutes,
    params:
        recipe=lambda w: plan.recipe(w.paper, w.experiment).name,
        parameters=lambda w: plan.parameters[w.paper, w.experiment],
        settings=lambda w: plan.settings(w.paper, w.experiment),
        code=lambda w: plan.code(w.paper, w.experiment),
        draws=lambda w: plan.draws(w.paper, w.experiment),
    message:
        "Simulation: {wildcards.paper}/{wildcards.experiment}"
    script:
        "../scripts/simulation.py"
