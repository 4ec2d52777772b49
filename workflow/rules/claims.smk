# Needs   config/claims/<paper>.yaml and the artifacts that its entries name.
# Makes   results/claims/<paper>/<claim>.json; results/claims.csv, .json and .html; results/gate.txt
# Steps   judge the claims, one job for all that share an artifact, which always succeeds; join the
#         verdicts; the gate fails on a verdict that is not the expected one.


for paper, artifact, name in plan.evidence():

    rule:
        name:
            f"claims_{paper}_{name}"
        input:
            evidence=plan.evidence_file(paper, artifact),
            sources=plan.claim_sources("claims"),
        output:
            plan.claims_on(paper, artifact),
        log:
            f"results/logs/claims/{paper}/{name}.log",
        benchmark:
            f"results/benchmarks/claims/{paper}/{name}.tsv"
        conda:
            "../../environment.yml"
        threads: 1
        resources:
            mem_mb=300,
            runtime=5,
        params:
            paper=paper,
            entries=lambda _, paper=paper, artifact=artifact: plan.entries(
                paper, artifact
            ),
            scale=plan.config.scale,
        message:
            f"Claims: {paper}, by {artifact}"
        shell:
            "python -m privreg claims {params.paper} --entries {params.entries:q}"
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
