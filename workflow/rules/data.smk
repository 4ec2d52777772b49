# Needs   a folder named in PRIVREG_DATA, or a network, or neither.
# Makes   data/<dataset>.nc: a real table, checked, or a stand-in that says so.
# Steps   look in the folder, else download and check, else stand in.


rule data:
    """Fetch, check and store one real table, or a stand-in that says so."""
    input:
        sources=plan.data_sources(),
    output:
        layout.data(),
    log:
        layout.log(layout.data()),
    benchmark:
        layout.benchmark(layout.data())
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=lambda w, attempt: 1000 * attempt,
        runtime=lambda w, attempt: 10 * attempt,
    params:
        mirrors=lambda w: plan.config.data[w.dataset].mirrors,
        looked_for_in=plan.local_data(),
    message:
        "Data: {wildcards.dataset}"
    shell:
        "python -m privreg data {wildcards.dataset} --mirrors {params.mirrors:q}"
        " --output {output:q} --log {log:q}"
