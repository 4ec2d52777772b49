# Needs   config/claims/<paper>.yaml and the artifacts that its entries name.
# Makes   results/claims/<paper>/<claim>.json; results/claims.csv, .json and .html; results/gate.txt
# Steps   judge each claim, which always succeeds; join the verdicts; the gate fails on a verdict
#         that is not the expected one.


rule claim:
    input:
        evidence=lambda w: plan.evidence(w.paper, w.claim),
        sources=plan.claim_sources("claim"),
    output:
        "results/claims/{paper}/{claim}.json",
    log:
        "results/logs/claims/{paper}/{claim}.log",
    benchmark:
        "results/benchmarks/claims/{paper}/{claim}.tsv"
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=300,
        runtime=5,
    params:
        entry=lambda w: plan.entry(w.paper, w.claim),
        scale=plan.config.scale,
    message:
        "Claim: {wildcards.paper}/{wildcards.claim}"
    shell:
        "python -m privreg claim {wildcards.paper} --entry {params.entry:q}"
        " --evidence {input.evidence:q} --scale {params.scale}"
        " --output {output:q} --log {log:q}"


rule ledger:
    input:
        verdicts=plan.claims(),
        sources=plan.claim_sources("ledger"),
    output:
        csv="results/claims.csv",
        json="results/claims.json",
        html=report(
            "results/claims.html", caption="../report/claims.rst", category="Ledger"
        ),
    log:
        "results/logs/ledger.log",
    benchmark:
        "results/benchmarks/ledger.tsv"
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=300,
        runtime=5,
    message:
        "Ledger of claims"
    shell:
        "python -m privreg ledger {input.verdicts:q} --csv {output.csv:q} --json {output.json:q}"
        " --html {output.html:q} --log {log:q}"


rule gate:
    input:
        ledger="results/claims.json",
        sources=plan.claim_sources("gate"),
    output:
        "results/gate.txt",
    log:
        "results/logs/gate.log",
    benchmark:
        "results/benchmarks/gate.tsv"
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=300,
        runtime=5,
    message:
        "Gate: verdicts against what is expected"
    shell:
        "python -m privreg gate {input.ledger:q} --output {output:q} --log {log:q}"
