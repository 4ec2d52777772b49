# Needs   config/claims/<paper>/<topic>.yaml and the artifacts that its entries name.
# Makes   verdicts/<paper>.json; claims/<paper>/<entry>.json on demand;
#         claims.csv and .json, findings.csv; index.html; entries/<paper>/<entry>.html; gate.txt;
#         the studies' own in studies/
# Steps   judge the entries, one job for all of a paper, which always succeeds;
#         join the verdicts with the ledger's words; the page shows them beside the figures; the
#         gate fails on a verdict that is not the expected one.


rule judge:
    """Judge the entries of a paper; always succeeds."""
    input:
        artifacts=lambda w: plan.ledgers.reads(w.paper).values(),
        ledger=lambda w: plan.ledgers.files(w.paper),
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
        mem_mb=lambda w, attempt: 300 * attempt,
        runtime=lambda w, attempt: 5 * attempt,
    params:
        code=lambda w: code_of(plan.claim_sources("judge")),
        folder=lambda w: plan.ledgers.folders(w.paper)[w.paper],
        scale=plan.config.scale,
        artifacts=lambda w: assignments(plan.ledgers.reads(w.paper)),
        expected=lambda w, input: expected.verdicts(w.paper),
    message:
        "Claims: {wildcards.paper}"
    shell:
        "python -m reproduction judge {wildcards.paper} --folder {params.folder:q}"
        " --scale {params.scale}"
        " --artifacts {params.artifacts:q} --expected {params.expected:q}"
        " --output {output:q} --log {log:q}"


rule claim:
    """Write the verdict on one entry to a file of its own, from what it reads."""
    input:
        artifacts=lambda w: plan.ledgers.reads(w.paper, w.claim).values(),
        ledger=lambda w: plan.ledgers.files(w.paper),
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
        mem_mb=lambda w, attempt: 300 * attempt,
        runtime=lambda w, attempt: 5 * attempt,
    params:
        code=lambda w: code_of(plan.claim_sources("claim")),
        folder=lambda w: plan.ledgers.folders(w.paper)[w.paper],
        scale=plan.config.scale,
        artifacts=lambda w: assignments(plan.ledgers.reads(w.paper, w.claim)),
        expected=lambda w, input: expected.verdicts(w.paper, w.claim),
    message:
        "Claim: {wildcards.paper}/{wildcards.claim}"
    shell:
        "python -m reproduction claim {wildcards.paper} --folder {params.folder:q}"
        " --entry {wildcards.claim} --scale {params.scale}"
        " --artifacts {params.artifacts:q} --expected {params.expected:q}"
        " --output {output:q} --log {log:q}"


rule ledger:
    """Join the ledgers with the verdicts on their entries."""
    input:
        verdicts=lambda w: plan.ledgers.verdicts(*plan.keys(w.book)),
        ledgers=lambda w: plan.ledgers.files(*plan.keys(w.book)),
    output:
        csv=layout.ledger("csv"),
        json=layout.ledger("json"),
        findings=layout.findings(),
    log:
        layout.log(layout.ledger("json")),
    benchmark:
        layout.benchmark(layout.ledger("json"))
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=lambda w, attempt: 300 * attempt,
        runtime=lambda w, attempt: 5 * attempt,
    params:
        code=lambda w: code_of(plan.claim_sources("ledger")),
        ledgers=lambda w: assignments(plan.ledgers.folders(*plan.keys(w.book))),
    message:
        "Ledger of claims"
    shell:
        "python -m reproduction ledger {input.verdicts:q} --ledgers {params.ledgers:q}"
        " --csv {output.csv:q} --json {output.json:q} --findings {output.findings:q} --log {log:q}"


rule page:
    """Show the ledger beside the figures, with the costs that this run measured."""
    input:
        ledger=layout.ledger("json"),
        images=lambda w: plan.images(*plan.keys(w.book)),
    output:
        page=report(layout.page(), caption="../report/claims.rst", category="Ledger"),
        entries=directory(layout.entries()),
    log:
        layout.log(layout.page()),
    benchmark:
        layout.benchmark(layout.page())
    conda:
        "../../environment.yml"
    threads: 2
    resources:
        mem_mb=lambda w, attempt: 500 * attempt,
        runtime=lambda w, attempt: 5 * attempt,
    params:
        code=lambda w: code_of(plan.claim_sources("page")),
        drawings=lambda w: plan.drawings(*plan.keys(w.book)),
        benchmarks=layout.benchmarks(),
    message:
        "Page of the ledger"
    shell:
        "python -m reproduction page {input.ledger:q} --drawings {params.drawings:q}"
        " --images {input.images:q} --benchmarks {params.benchmarks:q}"
        " --entries {output.entries:q} --output {output.page:q} --log {log:q}"


rule gate:
    """Fail if a verdict on the papers, or on the studies, is not the expected one."""
    input:
        ledger=layout.ledger("json"),
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
        mem_mb=lambda w, attempt: 300 * attempt,
        runtime=lambda w, attempt: 5 * attempt,
    params:
        code=lambda w: code_of(plan.claim_sources("gate")),
    message:
        "Gate: verdicts against what is expected"
    shell:
        "python -m reproduction gate {input.ledger:q} --output {output:q} --log {log:q}"


rule docs:
    """Write docs/results.md and the README's counts."""
    input:
        ledgers=plan.ledgers.files(*plan.config.blocks),
    log:
        layout.log(layout.docs()),
    benchmark:
        layout.benchmark(layout.docs())
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=lambda w, attempt: 300 * attempt,
        runtime=lambda w, attempt: 5 * attempt,
    params:
        code=lambda w: code_of(plan.claim_sources("docs")),
        ledgers=assignments(plan.ledgers.folders(*plan.config.blocks)),
        drawings=plan.drawings(*plan.config.blocks),
    message:
        "Docs from the ledgers"
    shell:
        "python -m reproduction docs --ledgers {params.ledgers:q} --drawings {params.drawings:q}"
        " --output docs/results.md --log {log:q}"


rule falsifier:
    """Make one deliberate mistake and judge it; always succeeds."""
    input:
        artifacts=lambda w: plan.falsifier(w.paper, w.version).files,
        ledger=lambda w: plan.ledgers.files(w.paper),
    output:
        layout.falsified(),
    log:
        layout.log(layout.falsified()),
    benchmark:
        layout.benchmark(layout.falsified())
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=lambda w, attempt: 1000 * attempt,
        runtime=lambda w, attempt: 30 * attempt,
    params:
        code=lambda w: code_of(plan.falsifier_sources(w.paper, w.version)),
        experiments=lambda w: plan.falsifier(w.paper, w.version).experiments,
        folder=lambda w: plan.ledgers.folders(w.paper)[w.paper],
        artifacts=lambda w: assignments(plan.falsifier(w.paper, w.version).artifacts),
    message:
        "Falsify: {wildcards.paper}/{wildcards.version}"
    shell:
        "python -m reproduction falsify {wildcards.paper}/{wildcards.version}"
        " --experiments {params.experiments:q} --folder {params.folder:q}"
        " --artifacts {params.artifacts:q}"
        " --output {output:q} --log {log:q}"


rule caught:
    """Fail if a deliberate mistake was not caught, or turned what it should not."""
    input:
        results=plan.falsified(),
    output:
        layout.caught(),
    log:
        layout.log(layout.caught()),
    benchmark:
        layout.benchmark(layout.caught())
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=lambda w, attempt: 300 * attempt,
        runtime=lambda w, attempt: 5 * attempt,
    params:
        code=lambda w: code_of(plan.claim_sources("caught", "falsify")),
    message:
        "Deliberate mistakes against the entries that must notice"
    shell:
        "python -m reproduction caught {input.results:q} --output {output:q} --log {log:q}"


rule claims:
    """The ledger of the papers."""
    input:
        layout.page(PAPERS),


rule falsify:
    """Deliberate mistakes, each of which named entries must notice."""
    input:
        layout.caught(),
