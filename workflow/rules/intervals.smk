# Needs   an experiment's summarised simulation; for some its theory.
# Makes   intervals/<paper>/<experiment>.nc
# Steps   confidence intervals from the iterates, their coverage and length.


rule intervals:
    """Compute an experiment's confidence intervals, their coverage and length."""
    input:
        unpack(lambda w: plan.reads(w.paper, w.experiment, "intervals")),
    output:
        f"{ROOT}/intervals/{{paper}}/{{experiment}}.nc",
    log:
        f"{ROOT}/logs/intervals/{{paper}}/{{experiment}}.log",
    benchmark:
        f"{ROOT}/benchmarks/intervals/{{paper}}/{{experiment}}.tsv"
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
    message:
        "Intervals: {wildcards.paper}/{wildcards.experiment}"
    script:
        "../scripts/intervals.py"
