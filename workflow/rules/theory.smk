# Needs   an experiment's parameters, and for some the table that they name.
# Makes   theory/<paper>/<experiment>.nc
# Steps   evaluate the recipe's theory.


rule theory:
    """Evaluate an experiment's theory."""
    input:
        reads=lambda w: plan.reads("theory", w.paper, w.experiment).values(),
    output:
        layout.theory(),
    log:
        layout.log(layout.theory()),
    benchmark:
        layout.benchmark(layout.theory())
    priority: 2
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=needs.memory_mb("theory"),
        runtime=needs.minutes("theory"),
    params:
        code=lambda w: code_of(plan.sources("theory", w.paper, w.experiment)),
        recipe=lambda w: plan.recipe(w.paper, w.experiment).name,
        parameters=lambda w: plan.parameters(w.paper, w.experiment),
        artifacts=lambda w: assignments(plan.reads("theory", w.paper, w.experiment)),
        expected=lambda w, input: expected.stage("theory", w.paper, w.experiment),
    message:
        "Theory: {wildcards.paper}/{wildcards.experiment}"
    shell:
        "python -m reproduction theory {wildcards.paper}/{wildcards.experiment}"
        " --recipe {params.recipe} --parameters {params.parameters:q}"
        " --artifacts {params.artifacts:q} --expected {params.expected:q}"
        " --output {output:q} --log {log:q}"
