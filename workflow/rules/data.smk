# Needs   a folder named in PRIVREG_DATA, or a network, or neither.
# Makes   results/data/<dataset>.nc: a real table, checked, or a stand-in that says so.
# Steps   look in the folder, else download and check, else stand in.


rule data:
    input:
        sources=plan.data_sources(),
    output:
        "results/data/{dataset}.nc",
    log:
        "results/logs/data/{dataset}.log",
    benchmark:
        "results/benchmarks/data/{dataset}.tsv"
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=500,
        runtime=10,
    params:
        mirrors=lambda wildcards: plan.config.data[wildcards.dataset].mirrors,
        looked_for_in=plan.local_data(),
    message:
        "Data: {wildcards.dataset}"
    shell:
        "python -m privreg data {wildcards.dataset} --mirrors {params.mirrors:q}"
        " --output {output:q} --log {log:q}"
