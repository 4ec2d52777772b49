# Needs   a folder named in PRIVREG_DATA, or a network, or neither.
# Makes   data/<dataset>.nc: a real table, checked, or a stand-in that says so; .json: its origin
# Steps   look in the folder, else download and check, else stand in.


rule data:
    """Fetch, check and store one real table, or a stand-in that says so."""
    output:
        table=f"{ROOT}/data/{{dataset}}.nc",
        origin=f"{ROOT}/data/{{dataset}}.json",
    log:
        f"{ROOT}/logs/data/{{dataset}}.log",
    benchmark:
        f"{ROOT}/benchmarks/data/{{dataset}}.tsv"
    priority: 2
    localrule: True
    conda:
        "../../environment.yml"
    resources:
        mem_mb=lambda wildcards, attempt: 1000 * attempt,
        runtime=lambda wildcards, attempt: 10 * attempt,
    params:
        code=code_of("privreg.data", "reproduction.engine.artifacts"),
        mirrors=lambda w: plan.config.data[w.dataset].mirrors,
        # Reads what the last run wrote, so that a real table stays in a shell without the files.
        looked_for_in=lambda w, output: looked_for_in(output.origin),
    message:
        "Data: {wildcards.dataset}"
    script:
        "../scripts/data.py"
