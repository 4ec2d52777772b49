# Needs   an experiment's parameters, and for some the table that they name.
# Makes   theory/<paper>/<experiment>.nc
# Steps   evaluate the recipe's theory.
# A job gets its validated `parameters` as an object, which Snakemake cannot compare with those of
# the last run; `settings` are the same as plain values.


rule theory:
    """Evaluate an experiment's theory."""
    input:
        unpack(lambda w: plan.reads(w.paper, w.experiment, "theory")),
    output:
        f"{ROOT}/theory/{{paper}}/{{experiment}}.nc",
    log:
        f"{ROOT}/logs/theory/{{paper}}/{{experiment}}.log",
    benchmark:
        f"{ROOT}/benchmarks/theory/{{paper}}/{{experiment}}.tsv"
    priority: 2
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
        "Theory: {wildcards.paper}/{wildcards.experiment}"
    script:
        "../scripts/theory.py"
