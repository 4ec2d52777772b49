# Needs   the artifacts that a figure or table names.
# Makes   figures/<paper>/<figure>.pdf and .png, tables/<paper>/<table>.csv
# Steps   draw, mark a reduced scale or stand-in data, save.


rule figure:
    """Draw one figure from artifacts alone."""
    input:
        unpack(lambda w: plan.drawn_from(w.paper, "figures", w.figure)),
    output:
        pdf=f"{ROOT}/figures/{{paper}}/{{figure}}.pdf",
        png=report(
            f"{ROOT}/figures/{{paper}}/{{figure}}.png",
            caption="../report/figure.rst",
            category="{paper}",
            labels={"figure": "{figure}"},
        ),
    log:
        f"{ROOT}/logs/figures/{{paper}}/{{figure}}.log",
    benchmark:
        f"{ROOT}/benchmarks/figures/{{paper}}/{{figure}}.tsv"
    localrule: True
    conda:
        "../../environment.yml"
    resources:
        mem_mb=lambda wildcards, attempt: 500 * attempt,
        runtime=lambda wildcards, attempt: 5 * attempt,
    params:
        code=lambda w: plan.drawing_code(w.paper, "figures"),
        caption=lambda w: plan.caption(w.paper, w.figure),
        scale=plan.config.scale,
    message:
        "Figure: {wildcards.paper}/{wildcards.figure}"
    script:
        "../scripts/figure.py"


rule table:
    """Write one table from artifacts alone."""
    input:
        unpack(lambda w: plan.drawn_from(w.paper, "tables", w.table)),
    output:
        f"{ROOT}/tables/{{paper}}/{{table}}.csv",
    log:
        f"{ROOT}/logs/tables/{{paper}}/{{table}}.log",
    benchmark:
        f"{ROOT}/benchmarks/tables/{{paper}}/{{table}}.tsv"
    localrule: True
    conda:
        "../../environment.yml"
    resources:
        mem_mb=lambda wildcards, attempt: 500 * attempt,
        runtime=lambda wildcards, attempt: 5 * attempt,
    params:
        code=lambda w: plan.drawing_code(w.paper, "tables"),
    message:
        "Table: {wildcards.paper}/{wildcards.table}"
    script:
        "../scripts/table.py"
