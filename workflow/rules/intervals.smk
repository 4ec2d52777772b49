# Needs   an experiment's gathered simulation; for some its theory.
# Makes   results/intervals/<paper>/<experiment>.nc
# Steps   confidence intervals from the iterates, their coverage and length.


rule intervals:
    input:
        simulation=lambda w: plan.reads(
            "intervals", w.paper, w.experiment, "simulation"
        ),
        theory=lambda w: plan.reads("intervals", w.paper, w.experiment, "theory"),
        sources=lambda w: plan.sources("intervals", w.paper, w.experiment),
    output:
        "results/intervals/{paper}/{experiment}.nc",
    log:
        "results/logs/intervals/{paper}/{experiment}.log",
    benchmark:
        "results/benchmarks/intervals/{paper}/{experiment}.tsv"
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=700,
        runtime=10,
    params:
        recipe=lambda w: plan.recipe(w.paper, w.experiment).name,
        parameters=lambda w: plan.parameters(w.paper, w.experiment),
    message:
        "Intervals: {wildcards.paper}/{wildcards.experiment}"
    shell:
        "python -m privreg intervals {wildcards.paper}/{wildcards.experiment}"
        " --recipe {params.recipe} --parameters {params.parameters:q}"
        " --simulation {input.simulation:q} --theory {input.theory:q}"
        " --output {output:q} --log {log:q}"
