# Needs   an experiment's parameters, and for some the table that they name.
# Makes   results/theory/<paper>/<experiment>.nc
# Steps   evaluate the recipe's theory.


rule theory:
    input:
        data=lambda w: plan.reads("theory", w.paper, w.experiment, "data"),
        sources=lambda w: plan.sources("theory", w.paper, w.experiment),
    output:
        "results/theory/{paper}/{experiment}.nc",
    log:
        "results/logs/theory/{paper}/{experiment}.log",
    benchmark:
        "results/benchmarks/theory/{paper}/{experiment}.tsv"
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=700,
        runtime=20,
    params:
        recipe=lambda w: plan.recipe(w.paper, w.experiment).name,
        parameters=lambda w: plan.parameters(w.paper, w.experiment),
    message:
        "Theory: {wildcards.paper}/{wildcards.experiment}"
    shell:
        "python -m privreg theory {wildcards.paper}/{wildcards.experiment}"
        " --recipe {params.recipe} --parameters {params.parameters:q} --data {input.data:q}"
        " --output {output:q} --log {log:q}"
