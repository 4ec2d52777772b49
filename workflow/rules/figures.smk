# Needs   the artifacts that a figure or table names.
# Makes   results/figures/<paper>/<figure>.pdf and .png, results/tables/<paper>/<table>.csv
# Steps   draw, mark a reduced scale or stand-in data, save.


rule figure:
    input:
        artifacts=lambda w: plan.drawing_artifacts("figure", w.paper, w.figure).values(),
        sources=lambda w: plan.drawing_sources("figure", w.paper),
    output:
        pdf="results/figures/{paper}/{figure}.pdf",
        png=report(
            "results/figures/{paper}/{figure}.png",
            caption="../report/figure.rst",
            category="{paper}",
            labels={"figure": "{figure}"},
        ),
    log:
        "results/logs/figures/{paper}/{figure}.log",
    benchmark:
        "results/benchmarks/figures/{paper}/{figure}.tsv"
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=500,
        runtime=10,
    params:
        artifacts=lambda w: plan.assignments("figure", w.paper, w.figure),
        caption=lambda w: plan.config.papers[w.paper].figures[w.figure].caption,
        scale=plan.config.scale,
    message:
        "Figure: {wildcards.paper}/{wildcards.figure}"
    shell:
        "python -m privreg figure {wildcards.paper}/{wildcards.figure}"
        " --artifacts {params.artifacts:q} --scale {params.scale}"
        " --output {output.pdf:q} {output.png:q} --log {log:q}"


rule table:
    input:
        artifacts=lambda w: plan.drawing_artifacts("table", w.paper, w.table).values(),
        sources=lambda w: plan.drawing_sources("table", w.paper),
    output:
        "results/tables/{paper}/{table}.csv",
    log:
        "results/logs/tables/{paper}/{table}.log",
    benchmark:
        "results/benchmarks/tables/{paper}/{table}.tsv"
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=500,
        runtime=10,
    params:
        artifacts=lambda w: plan.assignments("table", w.paper, w.table),
    message:
        "Table: {wildcards.paper}/{wildcards.table}"
    shell:
        "python -m privreg table {wildcards.paper}/{wildcards.table}"
        " --artifacts {params.artifacts:q} --output {output:q} --log {log:q}"
