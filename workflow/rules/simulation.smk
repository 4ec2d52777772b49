# Needs   an experiment's parameters, trials and seed; for some its theory and a table.
# Makes   simulation/<paper>/<experiment>.nc, from <experiment>/<shard>.nc
# Steps   simulate each shard of the trials; join them and summarise over the trials; both in one
#         job where there is one shard.
ruleorder: simulation > simulate
ruleorder: simulation > summarise


rule simulate:
    """Simulate one shard of an experiment's trials."""
    input:
        reads=lambda w: plan.reads("simulate", w.paper, w.experiment).values(),
    output:
        layout.shard(),
    log:
        layout.log(layout.shard()),
    benchmark:
        layout.benchmark(layout.shard())
    # Long jobs, and those that they wait for, before the many short ones.
    priority: 1
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=needs.memory_mb("simulation"),
        runtime=needs.minutes("simulation"),
    params:
        code=lambda w: code_of(plan.sources("simulate", w.paper, w.experiment)),
        recipe=lambda w: plan.recipe(w.paper, w.experiment).name,
        parameters=lambda w: plan.parameters(w.paper, w.experiment),
        artifacts=lambda w: assignments(plan.reads("simulate", w.paper, w.experiment)),
        expected=lambda w, input: expected.stage("simulate", w.paper, w.experiment),
        seed=plan.config.seed,
        trials=lambda w: plan.experiment(w.paper, w.experiment).trials,
        shards=lambda w: plan.experiment(w.paper, w.experiment).shards,
    message:
        "Simulation: {wildcards.paper}/{wildcards.experiment}, shard {wildcards.shard}"
    shell:
        "python -m reproduction simulate {wildcards.paper}/{wildcards.experiment}"
        " --recipe {params.recipe} --parameters {params.parameters:q}"
        " --seed {params.seed} --trials {params.trials} --shard {wildcards.shard}/{params.shards}"
        " --artifacts {params.artifacts:q} --expected {params.expected:q}"
        " --output {output:q} --log {log:q}"


rule summarise:
    """Join an experiment's shards and summarise them over the trials."""
    input:
        shards=lambda w: plan.shards(w.paper, w.experiment),
        reads=lambda w: plan.reads("summarise", w.paper, w.experiment).values(),
    output:
        layout.simulation(),
    log:
        layout.log(layout.simulation()),
    benchmark:
        layout.benchmark(layout.simulation())
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=lambda w, attempt: 1000 * attempt,
        runtime=lambda w, attempt: 10 * attempt,
    params:
        code=lambda w: code_of(plan.sources("summarise", w.paper, w.experiment)),
        recipe=lambda w: plan.recipe(w.paper, w.experiment).name,
        parameters=lambda w: plan.parameters(w.paper, w.experiment),
        artifacts=lambda w: assignments(plan.reads("summarise", w.paper, w.experiment)),
        expected=lambda w, input: expected.stage("summarise", w.paper, w.experiment),
    message:
        "Summary: {wildcards.paper}/{wildcards.experiment}"
    shell:
        "python -m reproduction summarise {wildcards.paper}/{wildcards.experiment}"
        " --recipe {params.recipe} --parameters {params.parameters:q} --shards {input.shards:q}"
        " --artifacts {params.artifacts:q} --expected {params.expected:q}"
        " --output {output:q} --log {log:q}"


rule simulation:
    """Simulate all trials of an experiment that are one shard, and summarise them."""
    input:
        reads=lambda w: plan.reads("simulation", w.paper, w.experiment).values(),
    output:
        shard=layout.shard(shard=0),
        summary=layout.simulation(),
    log:
        layout.log(layout.shard(shard=0)),
    benchmark:
        layout.benchmark(layout.shard(shard=0))
    wildcard_constraints:
        experiment="|".join(
            f"(?<=/{paper}/){name}"
            for paper, names in plan.simulated_at_once().items()
            for name in names
        )
        or "(?!)",
    priority: 1
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=needs.memory_mb("simulation"),
        runtime=needs.minutes("simulation"),
    params:
        code=lambda w: code_of(plan.sources("simulation", w.paper, w.experiment)),
        recipe=lambda w: plan.recipe(w.paper, w.experiment).name,
        parameters=lambda w: plan.parameters(w.paper, w.experiment),
        artifacts=lambda w: assignments(plan.reads("simulation", w.paper, w.experiment)),
        expected=lambda w, input: expected.stage("simulation", w.paper, w.experiment),
        seed=plan.config.seed,
        trials=lambda w: plan.experiment(w.paper, w.experiment).trials,
    message:
        "Simulation: {wildcards.paper}/{wildcards.experiment}"
    shell:
        "python -m reproduction simulation {wildcards.paper}/{wildcards.experiment}"
        " --recipe {params.recipe} --parameters {params.parameters:q}"
        " --seed {params.seed} --trials {params.trials}"
        " --artifacts {params.artifacts:q} --expected {params.expected:q}"
        " --output {output.shard:q} --summary {output.summary:q} --log {log:q}"
