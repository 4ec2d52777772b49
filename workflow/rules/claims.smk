# Needs   config/claims/<paper>.yaml and the artifacts that its entries name.
# Makes   verdicts/<paper>/<stage>/<experiment>.json; claims/<paper>/<claim>.json on demand;
#         claims.csv, .json and .html; gate.txt
# Steps   judge the claims, one job for all that share an artifact, which always succeeds; join the
#         verdicts; the gate fails on a verdict that is not the expected one.


rule judge:
    """Judge the claims that one artifact decides; always succeeds."""
    input:
        evidence=lambda w: layout.artifact(w.paper, f"{w.stage}/{w.experiment}"),
        sources=plan.claim_sources("judge"),
    output:
        layout.verdicts(),
    log:
        layout.log(layout.verdicts()),
    benchmark:
        layout.benchmark(layout.verdicts())
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=300,
        runtime=5,
    params:
        entries=lambda w: plan.entries(w.paper, f"{w.stage}/{w.experiment}"),
        scale=plan.config.scale,
    message:
        "Claims: {wildcards.paper}, by {wildcards.stage}/{wildcards.experiment}"
    shell:
        "python -m privreg judge {wildcards.paper} --entries {params.entries:q}"
        " --evidence {input.evidence:q} --scale {params.scale} --output {output:q} --log {log:q}"


rule claim:
    """Write the verdict on one claim to a file of its own."""
    input:
        verdicts=lambda w: plan.verdicts_on(w.paper, w.claim),
        sources=plan.claim_sources("claim"),
    output:
        layout.claim(),
    log:
        layout.log(layout.claim()),
    benchmark:
        layout.benchmark(layout.claim())
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=300,
        runtime=5,
    message:
        "Claim: {wildcards.paper}/{wildcards.claim}"
    shell:
        "python -m privreg claim {input.verdicts:q} --claim {wildcards.claim}"
        " --output {output:q} --log {log:q}"


rule ledger:
    """Join all verdicts into a table and a page."""
    input:
        verdicts=plan.verdicts(),
        sources=plan.claim_sources("ledger"),
    output:
        csv=layout.ledger("csv"),
        json=layout.ledger("json"),
        html=report(
            layout.ledger("html"), caption="../report/claims.rst", category="Ledger"
        ),
    log:
        layout.log(layout.ledger("json")),
    benchmark:
        layout.benchmark(layout.ledger("json"))
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
    """Fail if a verdict is not the expected one."""
    input:
        ledger=layout.ledger("json"),
        sources=plan.claim_sources("gate"),
    output:
        layout.gate(),
    log:
        layout.log(layout.gate()),
    benchmark:
        layout.benchmark(layout.gate())
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
