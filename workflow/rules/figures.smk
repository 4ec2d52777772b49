# Needs   the artifacts that a figure or table names.
# Makes   figures/<paper>/<figure>.pdf and .png, tables/<paper>/<table>.csv
# Steps   draw, mark a reduced scale or stand-in data, save.


rule figure:
    """Draw one figure from artifacts alone."""
    input:
        reads=lambda w: plan.drawing_reads("figure", w.paper, w.figure).values(),
    output:
        pdf=layout.figure(suffix="pdf"),
        png=report(
            layout.figure(suffix="png"),
            caption="../report/figure.rst",
            category="{paper}",
            labels={"figure": "{figure}"},
        ),
    log:
        layout.log(layout.figure(suffix="png")),
    benchmark:
        layout.benchmark(layout.figure(suffix="png"))
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=lambda w, attempt: 500 * attempt,
        runtime=lambda w, attempt: 10 * attempt,
    params:
        code=lambda w: code_of(plan.drawing_sources("figure", w.paper)),
        artifacts=lambda w: assignments(plan.drawing_reads("figure", w.paper, w.figure)),
        expected=lambda w, input: expected.drawing("figure", w.paper, w.figure),
        caption=lambda w: plan.caption(w.paper, w.figure),
        scale=lambda w: plan.scale_of_drawing("figure", w.paper, w.figure),
    message:
        "Figure: {wildcards.paper}/{wildcards.figure}"
    shell:
        "python -m reproduction figure {wildcards.paper}/{wildcards.figure}"
        " --artifacts {params.artifacts:q} --expected {params.expected:q} --scale {params.scale}"
        " --output {output.pdf:q} {output.png:q} --log {log:q}"


rule table:
    """Write one table from artifacts alone."""
    input:
        reads=lambda w: plan.drawing_reads("table", w.paper, w.table).values(),
    output:
        layout.table(),
    log:
        layout.log(layout.table()),
    benchmark:
        layout.benchmark(layout.table())
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=lambda w, attempt: 500 * attempt,
        runtime=lambda w, attempt: 10 * attempt,
    params:
        code=lambda w: code_of(plan.drawing_sources("table", w.paper)),
        artifacts=lambda w: assignments(plan.drawing_reads("table", w.paper, w.table)),
        expected=lambda w, input: expected.drawing("table", w.paper, w.table),
    message:
        "Table: {wildcards.paper}/{wildcards.table}"
    shell:
        "python -m reproduction table {wildcards.paper}/{wildcards.table}"
        " --artifacts {params.artifacts:q} --expected {params.expected:q}"
        " --output {output:q} --log {log:q}"
