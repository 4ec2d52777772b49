# Needs   the real tables, and a package index for environments of their own below build/peers.
# Makes   peers/measured.json, peers/tables.md, peers/comparison.png
# Steps   draw the tables, tune and fit each library in a process of its own, judge on held-out rows.
# Part of no other target: `snakemake peers`. `make peers` writes the same into docs/comparison.md.
PEERS = HERE / "benchmarks/peers"


rule peers:
    """Fit other libraries' private regressions beside ours, in environments of their own."""
    input:
        program=str(PEERS / "run.py"),
        programs=sorted(map(str, PEERS.glob("*.py"))),
        populations=str(PEERS.parent / "least_squares/populations.py"),
        locks=sorted(map(str, PEERS.glob("*.txt"))),
    output:
        measured=f"{ROOT}/peers/measured.json",
        tables=f"{ROOT}/peers/tables.md",
        picture=f"{ROOT}/peers/comparison.png",
    log:
        f"{ROOT}/logs/peers.log",
    benchmark:
        f"{ROOT}/benchmarks/peers.tsv"
    # Beside the files and the network of the shell that planned the run.
    localrule: True
    conda:
        "../../environment.yml"
    resources:
        mem_mb=lambda wildcards, attempt: 2000 * attempt,
        runtime=lambda wildcards, attempt: 30 * attempt,
    params:
        code=code_of(
            "privreg.estimators.linear_regression",
            "reproduction.studies.compared_tables",
            "privreg.data",
        ),
        folder=lambda w, output: Path(output.measured).parent,
    message:
        "Peers: other libraries beside ours, 25 seeds"
    shell:
        "python {input.program:q} {params.folder:q} > {log:q} 2>&1"
