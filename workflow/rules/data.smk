# Needs   a folder named in PRIVREG_DATA, or a network, or neither.
# Makes   data/<dataset>.nc: a real table, checked, or a stand-in that says so; .json: its origin
# Steps   look in the folder, else download and check, else stand in, unless a real table is there.
table_sources = {name: table_source(name, layout) for name in plan.config.data}


rule data:
    """Fetch, check and store one real table, or a stand-in that says so."""
    output:
        table=layout.data(),
        origin=layout.origin(),
    log:
        layout.log(layout.data()),
    benchmark:
        layout.benchmark(layout.data())
    priority: 2
    # Beside the files and the network of the shell that planned the run.
    localrule: True
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=lambda w, attempt: 1000 * attempt,
        runtime=lambda w, attempt: 10 * attempt,
    params:
        code=lambda w: code_of(plan.data_sources()),
        mirrors=lambda w: plan.config.data[w.dataset].mirrors,
        looked_for_in=lambda w: table_sources[w.dataset].looked_for_in,
        source=lambda w, output: table_sources[w.dataset].options,
    message:
        "Data: {wildcards.dataset}"
    shell:
        "python -m reproduction data {wildcards.dataset} --mirrors {params.mirrors:q} {params.source:q}"
        " --output {output.table:q} --origin {output.origin:q} --log {log:q}"
