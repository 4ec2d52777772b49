# Needs   config/claims/<paper>/<topic>.yaml and the artifacts that its entries name.
# Makes   verdicts/<paper>.json; claims/<paper>/<entry>.json on demand;
#         claims.csv and .json, findings.csv; index.html, gallery.html, entries/<paper>/<entry>.html; gate.txt;
#         the studies' own in studies/; falsified/<paper>/<version>.json and falsified.txt
# Steps   judge the entries, one job for all of a paper, which always succeeds; join the verdicts of
#         the papers; show them and the figures; fail on a verdict that is not the expected one.


rule judge:
    """Judge the entries of a paper; always succeeds."""
    input:
        ledgers=lambda w: ledger_files(w.paper),
        artifacts=lambda w: plan.evidence(w.paper),
    output:
        f"{ROOT}/verdicts/{{paper}}.json",
    log:
        f"{ROOT}/logs/verdicts/{{paper}}.log",
    benchmark:
        f"{ROOT}/benchmarks/verdicts/{{paper}}.tsv"
    localrule: True
    conda:
        "../../environment.yml"
    resources:
        mem_mb=lambda wildcards, attempt: 500 * attempt,
        runtime=lambda wildcards, attempt: 5 * attempt,
    params:
        code=code_of("reproduction.engine.verdicts"),
        stated=lambda w: plan.stated_code(w.paper),
        scale=plan.config.scale,
    message:
        "Claims: {wildcards.paper}"
    script:
        "../scripts/judge.py"


use rule judge as claim with:
    input:
        ledgers=lambda w: ledger_files(w.paper),
        artifacts=lambda w: plan.evidence(w.paper, w.claim),
    output:
        f"{ROOT}/claims/{{paper}}/{{claim}}.json",
    log:
        f"{ROOT}/logs/claims/{{paper}}/{{claim}}.log",
    benchmark:
        f"{ROOT}/benchmarks/claims/{{paper}}/{{claim}}.tsv"
    message:
        "Claim: {wildcards.paper}/{wildcards.claim}"


rule ledger:
    """Join the verdicts of the papers, or of the studies."""
    input:
        ledgers=lambda w: ledger_files(*plan.keys(w.book)),
        verdicts=lambda w: expand(
            f"{ROOT}/verdicts/{{paper}}.json", paper=plan.keys(w.book)
        ),
    output:
        csv=f"{ROOT}/{{book}}claims.csv",
        json=f"{ROOT}/{{book}}claims.json",
        findings=f"{ROOT}/{{book}}findings.csv",
    log:
        f"{ROOT}/logs/{{book}}claims.log",
    benchmark:
        f"{ROOT}/benchmarks/{{book}}claims.tsv"
    localrule: True
    conda:
        "../../environment.yml"
    resources:
        mem_mb=lambda wildcards, attempt: 300 * attempt,
        runtime=lambda wildcards, attempt: 5 * attempt,
    params:
        code=code_of("reproduction.engine.verdicts"),
        papers=lambda w: plan.keys(w.book),
    message:
        "Ledger of claims"
    script:
        "../scripts/ledger.py"


rule page:
    """Show the ledger and the figures, with the costs that this run measured."""
    input:
        ledger=f"{ROOT}/{{book}}claims.json",
        images=lambda w: [
            each for each in plan.built(*plan.keys(w.book)) if each.endswith("png")
        ],
    output:
        page=report(
            f"{ROOT}/{{book}}index.html",
            caption="../report/claims.rst",
            category="Ledger",
        ),
        gallery=f"{ROOT}/{{book}}gallery.html",
        entries=directory(f"{ROOT}/{{book}}entries"),
    log:
        f"{ROOT}/logs/{{book}}page.log",
    benchmark:
        f"{ROOT}/benchmarks/{{book}}page.tsv"
    localrule: True
    conda:
        "../../environment.yml"
    resources:
        mem_mb=lambda wildcards, attempt: 500 * attempt,
        runtime=lambda wildcards, attempt: 5 * attempt,
    params:
        code=code_of("reproduction.engine.page"),
        templates=digest_of_folder(HERE / "src/reproduction/engine/templates"),
        drawings=lambda w: plan.described(*plan.keys(w.book)),
        coverage=lambda w: plan.coverage(*plan.keys(w.book)),
    message:
        "Page of the ledger"
    script:
        "../scripts/page.py"


rule gate:
    """Fail if a verdict on the papers, or on the studies, is not the expected one."""
    input:
        ledger=f"{ROOT}/{{book}}claims.json",
    output:
        f"{ROOT}/{{book}}gate.txt",
    log:
        f"{ROOT}/logs/{{book}}gate.log",
    benchmark:
        f"{ROOT}/benchmarks/{{book}}gate.tsv"
    localrule: True
    conda:
        "../../environment.yml"
    resources:
        mem_mb=lambda wildcards, attempt: 300 * attempt,
        runtime=lambda wildcards, attempt: 5 * attempt,
    params:
        code=code_of("reproduction.engine.verdicts"),
    message:
        "Gate: verdicts against what is expected"
    script:
        "../scripts/gate.py"


rule falsifier:
    """Make one deliberate mistake and judge it; always succeeds."""
    input:
        ledgers=lambda w: ledger_files(w.paper),
        artifacts=lambda w: plan.falsifier_reads(w.paper, w.version),
    output:
        f"{ROOT}/falsified/{{paper}}/{{version}}.json",
    log:
        f"{ROOT}/logs/falsified/{{paper}}/{{version}}.log",
    benchmark:
        f"{ROOT}/benchmarks/falsified/{{paper}}/{{version}}.tsv"
    conda:
        "../../environment.yml"
    resources:
        mem_mb=lambda wildcards, attempt: 1000 * attempt,
        runtime=lambda wildcards, attempt: 30 * attempt,
    params:
        code=lambda w: plan.falsifier_code(w.paper, w.version),
        experiments=lambda w: plan.falsifier(w.paper, w.version),
    message:
        "Falsify: {wildcards.paper}/{wildcards.version}"
    script:
        "../scripts/falsifier.py"


rule caught:
    """Fail if a deliberate mistake was not caught, or turned what it should not."""
    input:
        results=lambda w: plan.falsified(),
    output:
        f"{ROOT}/falsified.txt",
    log:
        f"{ROOT}/logs/falsified.log",
    benchmark:
        f"{ROOT}/benchmarks/falsified.tsv"
    localrule: True
    conda:
        "../../environment.yml"
    resources:
        mem_mb=lambda wildcards, attempt: 300 * attempt,
        runtime=lambda wildcards, attempt: 5 * attempt,
    params:
        code=code_of("reproduction.engine.falsify"),
    message:
        "Deliberate mistakes against the entries that must notice"
    script:
        "../scripts/caught.py"


rule claims:
    """The ledger of the papers."""
    input:
        f"{ROOT}/index.html",


rule falsify:
    """Deliberate mistakes, each of which named entries must notice."""
    input:
        f"{ROOT}/falsified.txt",
