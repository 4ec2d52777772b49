# Needs   the real tables, and a package index for environments of their own below build/peers.
# Makes   peers/measured.json, peers/tables.md, peers/comparison.png
# Steps   draw the tables, tune and fit each library in a process of its own, judge on held-out rows.
# Part of no other target: `snakemake peers`. `make peers` writes the same into docs/comparison.md.
PEERS = SOURCE.parent / "benchmarks" / "peers"


rule peers:
    """Fit other libraries' private regressions beside ours, in environments of their own."""
    input:
        programs=sorted(map(str, PEERS.glob("*.py"))),
        populations=str(PEERS.parent / "least_squares" / "populations.py"),
        locks=sorted(map(str, PEERS.glob("*.txt"))),
    output:
        [layout.peers(name) for name in PEERS_FILES],
    log:
        layout.log(layout.peers("measured.json")),
    benchmark:
        layout.benchmark(layout.peers("measured.json"))
    # Beside the files and the network of the shell that planned the run.
    localrule: True
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=lambda w, attempt: 2000 * attempt,
        runtime=lambda w, attempt: 30 * attempt,
    params:
        code=lambda w: code_of(plan.peers_sources()),
        program=PEERS / "run.py",
        folder=lambda w, output: Path(output[0]).parent,
    message:
        "Peers: other libraries beside ours, 25 seeds"
    shell:
        "python {params.program:q} --output {params.folder:q} > {log:q} 2>&1"
