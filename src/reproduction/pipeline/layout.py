"""Where everything lies below `results/`: the one place that states a path.

Left out, an argument stays a wildcard of the workflow: `Layout("paper").theory()` is the pattern
`results/theory/{paper}/{experiment}.nc`.
"""

from __future__ import annotations

from dataclasses import dataclass

FIGURE_FORMATS = ("pdf", "png")
# Folders of the pages with their gates, below the root: that of the papers lies at the root itself.
PAPERS, STUDIES = "", "studies/"
PEERS_FILES = ("measured.json", "tables.md", "comparison.png")


def book_of(key: str) -> str:
    """The folder of the page that shows a paper or the studies."""
    return STUDIES if f"{key}/" == STUDIES else PAPERS


@dataclass(frozen=True)
class Layout:
    """Paths of a run's files; each scale but the paper's own has a folder to itself."""

    scale: str

    @property
    def root(self) -> str:
        return "results" if self.scale == "paper" else f"results/{self.scale}"

    def data(self, dataset: str = "{dataset}") -> str:
        return f"{self.root}/data/{dataset}.nc"

    def origin(self, dataset: str = "{dataset}") -> str:
        """Where a table came from."""
        return f"{self.root}/data/{dataset}.json"

    def theory(self, paper: str = "{paper}", experiment: str = "{experiment}") -> str:
        return f"{self.root}/theory/{paper}/{experiment}.nc"

    def simulation(self, paper: str = "{paper}", experiment: str = "{experiment}") -> str:
        return f"{self.root}/simulation/{paper}/{experiment}.nc"

    def shard(
        self,
        paper: str = "{paper}",
        experiment: str = "{experiment}",
        shard: int | str = "{shard}",
    ) -> str:
        return f"{self.root}/simulation/{paper}/{experiment}/{shard}.nc"

    def intervals(self, paper: str = "{paper}", experiment: str = "{experiment}") -> str:
        return f"{self.root}/intervals/{paper}/{experiment}.nc"

    def figure(self, paper: str = "{paper}", figure: str = "{figure}", *, suffix: str) -> str:
        return f"{self.root}/figures/{paper}/{figure}.{suffix}"

    def table(self, paper: str = "{paper}", table: str = "{table}") -> str:
        return f"{self.root}/tables/{paper}/{table}.csv"

    def verdicts(self, paper: str = "{paper}") -> str:
        return f"{self.root}/verdicts/{paper}.json"

    def claim(self, paper: str = "{paper}", claim: str = "{claim}") -> str:
        return f"{self.root}/claims/{paper}/{claim}.json"

    def ledger(self, suffix: str, book: str = "{book}") -> str:
        return f"{self.root}/{book}claims.{suffix}"

    def findings(self, book: str = "{book}") -> str:
        return f"{self.root}/{book}findings.csv"

    def falsified(self, paper: str = "{paper}", version: str = "{version}") -> str:
        """What a deliberate mistake does to a paper's verdicts."""
        return f"{self.root}/falsified/{paper}/{version}.json"

    def caught(self) -> str:
        return f"{self.root}/falsified.txt"

    def docs(self) -> str:
        """The job that writes what the repository says of the ledgers."""
        return f"{self.root}/docs.md"

    def page(self, book: str = "{book}") -> str:
        return f"{self.root}/{book}index.html"

    def entries(self, book: str = "{book}") -> str:
        """Folder with a page for each entry and finding, `<paper>/<entry>.html`."""
        return f"{self.root}/{book}entries"

    def peers(self, file: str) -> str:
        """One of `PEERS_FILES`, which compare other libraries with this one."""
        return f"{self.root}/peers/{file}"

    def benchmarks(self) -> str:
        return f"{self.root}/benchmarks"

    def gate(self, book: str = "{book}") -> str:
        return f"{self.root}/{book}gate.txt"

    def log(self, artifact: str) -> str:
        """Log of the job that makes an artifact."""
        return self._beside(artifact, "logs", "log")

    def benchmark(self, artifact: str) -> str:
        """Time and memory of the job that makes an artifact."""
        return self._beside(artifact, "benchmarks", "tsv")

    def artifact(self, paper: str, artifact: str) -> str:
        """Path of an artifact named `stage/experiment`, or `data/dataset`."""
        stage, _, name = artifact.partition("/")
        if stage == "data":
            return self.data(name)
        makers = {
            "theory": self.theory,
            "simulation": self.simulation,
            "intervals": self.intervals,
        }
        return makers[stage](paper, name)

    def _beside(self, artifact: str, folder: str, suffix: str) -> str:
        inside = artifact.removeprefix(f"{self.root}/").rpartition(".")[0]
        return f"{self.root}/{folder}/{inside}.{suffix}"
