# Needs   an experiment's parameters, trials and seed; for some its theory and a table.
# Makes   results/simulation/<paper>/<experiment>.nc, gathered from <experiment>/<shard>.nc
# Steps   simulate each shard of the trials; join them and summarise over the trials.


rule simulate:
    input:
        data=lambda w: plan.reads("simulate", w.paper, w.experiment, "data"),
        theory=lambda w: plan.reads("simulate", w.paper, w.experiment, "theory"),
        sources=lambda w: plan.sources("simulate", w.paper, w.experiment),
    output:
        "results/simulation/{paper}/{experiment}/{shard}.nc",
    log:
        "results/logs/simulation/{paper}/{experiment}/{shard}.log",
    benchmark:
        "results/benchmarks/simulation/{paper}/{experiment}/{shard}.tsv"
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=60,
    params:
        recipe=lambda w: plan.recipe(w.paper, w.experiment).name,
        parameters=lambda w: plan.parameters(w.paper, w.experiment),
        seed=plan.config.seed,
        trials=lambda w: plan.experiment(w.paper, w.experiment).trials,
        shards=lambda w: plan.experiment(w.paper, w.experiment).shards,
    message:
        "Simulation: {wildcards.paper}/{wildcards.experiment}, shard {wildcards.shard}"
    shell:
        "python -m privreg simulate {wildcards.paper}/{wildcards.experiment}"
        " --recipe {params.recipe} --parameters {params.parameters:q}"
        " --seed {params.seed} --trials {params.trials} --shard {wildcards.shard}/{params.shards}"
        " --data {input.data:q} --theory {input.theory:q}"
        " --output {output:q} --log {log:q}"


rule gather:
    input:
        shards=lambda w: plan.shards(w.paper, w.experiment),
        data=lambda w: plan.reads("summarise", w.paper, w.experiment, "data"),
        theory=lambda w: plan.reads("summarise", w.paper, w.experiment, "theory"),
        sources=lambda w: plan.sources("summarise", w.paper, w.experiment),
    output:
        "results/simulation/{paper}/{experiment}.nc",
    log:
        "results/logs/simulation/{paper}/{experiment}.log",
    benchmark:
        "results/benchmarks/simulation/{paper}/{experiment}.tsv"
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        recipe=lambda w: plan.recipe(w.paper, w.experiment).name,
        parameters=lambda w: plan.parameters(w.paper, w.experiment),
    message:
        "Summary: {wildcards.paper}/{wildcards.experiment}"
    shell:
        "python -m privreg gather {wildcards.paper}/{wildcards.experiment}"
        " --recipe {params.recipe} --parameters {params.parameters:q} --shards {input.shards:q}"
        " --data {input.data:q} --theory {input.theory:q} --output {output:q} --log {log:q}"
