"""Fits with little privacy on 31 tables on which no constant was chosen.

`python benchmarks/least_squares/scarce.py FOLDER` prints the rows of docs/private-intervals.md. It
fills an empty FOLDER with tables instead: run it first in the peers' environment `tables`.
"""

import sys
import warnings
from pathlib import Path

import numpy as np

FITS, EPSILONS = 40, (0.1, 0.25, 0.5, 1.0, 4.0)
# Package, table, label, and columns that are left out: row names and other forms of the label.
TABLES = """AER/CPS1988 wage; AER/CollegeDistance score; modeldata/credit_data Amount Home Marital
Records Job; mosaicData/TenMileRace net state time; nlme/MathAchieve MathAch School; COUNT/azpro
los; COUNT/rwm5yr docvis id; ISLR/Default default; DAAG/cps1 re78; mlmRev/Chem97 score lea school
student; robustbase/NOxEmissions LNOx; wooldridge/census2000 lweekinc state puma; carData/Vocab
vocabulary; wooldridge/gpa2 colgpa; Ecdat/HI whrswk; Ecdat/DoctorContacts mdu; AER/Fertility2 work;
AER/GSS7402 kids agefirstbirth; DAAG/headInjury clinically.important.brain.injury; dplyr/storms
wind name status category tropicalstorm_force_diameter hurricane_force_diameter; mlmRev/egsingle
math schoolid childid; mlmRev/ScotsSec attain primary second; ISLR/Wage wage logwage region;
nycflights13/weather temp time_hour year dewp wind_gust; carData/Wells switch; Ecdat/LaborSupply
lnhr id; ggplot2movies/movies rating title mpaa budget r1 r2 r3 r4 r5 r6 r7 r8 r9 r10;
modeldata/taxi tip; modeldata/lending_club int_rate sub_grade addr_state Class; mlmRev/Exam
normexam school student; lme4/VerbAgg r2 item id resp"""


def write(folder: Path) -> None:
    from populations import rdata, table

    for number, line in enumerate(TABLES.replace("\n", " ").split("; ")):
        source, label, *left_out = line.split()
        few = rdata(*source.split("/")).drop(columns=left_out).dropna().head(50_000)
        kept = few[[c for c in few if few[c].dtype.kind in "biuf" or few[c].nunique() < 13]]
        found = table(lambda kept=kept: kept, label=label)
        np.savez(folder / f"{number:02}.npz", name=source, **found._asdict())


def to_bounds(values: np.ndarray) -> np.ndarray:
    """Columns in [-1, 1], for bounds that are rounded outward to half a power of ten."""
    low, high = values.min(axis=0), values.max(axis=0)
    unit = 10.0 ** np.floor(np.log10(high - low)) / 2
    low, high = np.floor(low / unit) * unit, np.ceil(high / unit) * unit
    return (2 * values - low - high) / (high - low)


def fits(x: np.ndarray, y: np.ndarray, epsilon: float) -> tuple:
    """Risks (fits, 4), and of each default fit: coverage, infinite intervals, whether it warns."""
    import recipes

    from privreg import Budget, PrivateLinearRegression
    from privreg.algorithms.adassp import Bounds, adassp_zcdp
    from privreg.algorithms.samples import ArraySamples

    design, budget = np.column_stack([x, np.ones(len(y))]), Budget.approximate(epsilon, 1e-6)
    beta, bounds = np.linalg.lstsq(design, y, rcond=None)[0], Bounds(np.sqrt(design.shape[1]), 1.0)
    model = PrivateLinearRegression(budget, feature_bounds=(-1, 1), label_bounds=(-1, 1))
    thetas, found, spent = [], [], Budget.zcdp(budget.rho)
    for seed in range(FITS):
        rng = np.random.Generator(np.random.SFC64([seed, 53]))
        chosen = rng.integers(len(y), size=len(y))
        for target in ("huber", "least_squares"):
            model.set_params(target=target, random_state=seed).fit(x[chosen], y[chosen])
            thetas.append(np.append(model.coef_, model.intercept_))
        given, warned = model.confidence_intervals(), "likely worse" in " ".join(model.warnings_)
        infinite = np.isinf(given.half_width[:-1]).mean()
        found.append((given.covers(beta)[:-1].mean(), infinite, warned))
        thetas.append(recipes.plain_descent(x[chosen], y[chosen], budget, rng, None).coefficients)
        samples = ArraySamples(design[chosen], y[chosen])
        thetas.append(adassp_zcdp(samples, bounds=bounds, budget=spent, rng=rng))
    off = (np.array(thetas) - beta) @ np.linalg.cholesky(design.T @ design / len(y))
    return (off**2).sum(axis=1).reshape(FITS, 4) / np.var(design @ beta), *np.array(found).T


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    if not any(folder.iterdir()):
        sys.exit(write(folder))
    warnings.simplefilter("ignore", UserWarning)
    sys.path.insert(0, str(Path(__file__).parents[1] / "peers"))
    for epsilon in EPSILONS:
        cells = []
        for file in sorted(folder.glob("*.npz")):
            held = np.load(file)
            cells.append(fits(*map(to_bounds, (held["features"], held["labels"])), epsilon))
            print(epsilon, held["name"], *np.median(cells[-1][0], axis=0), np.mean(cells[-1][1]))
        risks, covered, infinite, warned = (np.array(each) for each in zip(*cells, strict=True))
        worse, good = risks[..., 1] > 1, risks[..., 1] < 0.1
        for middle in (np.median(risks, axis=1), risks.mean(axis=1)):
            ratio = middle[:, 1] / middle.min(axis=1)
            print(
                f"first in {(ratio <= 1.1).mean():.2f}, largest ratio {ratio.max():.2f}", end="; "
            )
        print(f"coverage {covered.mean():.3f}, infinite {infinite.mean():.2f}", end="; ")
        print("worse than the mean", (risks > 1).mean(axis=(0, 1)), "warned", end=" ")
        print(f"{warned[worse].sum()} of {worse.sum()}, {warned[good].sum()} of {good.sum()} good")
