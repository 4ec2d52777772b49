# Needs   an experiment's summarised simulation; for some its theory.
# Makes   intervals/<paper>/<experiment>.nc
# Steps   confidence intervals from the iterates, their coverage and length.


rule intervals:
    """Compute an experiment's confidence intervals, their coverage and length."""
    input:
        reads=lambda w: plan.reads("intervals", w.paper, w.experiment).values(),
    output:
        layout.intervals(),
    log:
        layout.log(layout.intervals()),
    benchmark:
        layout.benchmark(layout.intervals())
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=needs.memory_mb("intervals"),
        runtime=needs.minutes("intervals"),
    params:
        code=lambda w: code_of(plan.sources("intervals", w.paper, w.experiment)),
        recipe=lambda w: plan.recipe(w.paper, w.experiment).name,
        parameters=lambda w: plan.parameters(w.paper, w.experiment),
        artifacts=lambda w: assignments(plan.reads("intervals", w.paper, w.experiment)),
        expected=lambda w, input: expected.stage("intervals", w.paper, w.experiment),
    message:
        "Intervals: {wildcards.paper}/{wildcards.experiment}"
    shell:
        "python -m reproduction intervals {wildcards.paper}/{wildcards.experiment}"
        " --recipe {params.recipe} --parameters {params.parameters:q}"
        " --artifacts {params.artifacts:q} --expected {params.expected:q}"
        " --output {output:q} --log {log:q}"
