# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Tutorial: from a question to a private fit
#
# A table holds size, year and rent of ten thousand flats. How accurate is a private fit, which
# method is best, and what do the error bars mean? Each build of the site runs this notebook.

# %%
import tempfile

import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression

from privreg import Budget, Odometer, PrivateLinearRegression, Problem, plan_run

# %% [markdown]
# ## How accurate is a fit at a given budget?
#
# A plan does not read the table. It needs the numbers of rows and features, and a guess of the
# signal: here the norm of the slopes is three times the standard deviation of the errors.

# %% alt="Predicted excess risk against ε: least squares and Huber far below AdaSSP, all falling"
problem = Problem(10_000, np.ones(2), signal=3.0, label_noise_std=1.0)
epsilons = [0.1, 0.2, 0.5, 1.0, 2.0, 4.0]
budgets = [Budget.approximate(each, 1e-6) for each in epsilons]

figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
for method in ("least_squares", "huber", "adassp"):
    plans = [plan_run(problem, each, methods=[method]) for each in budgets]
    risks = [plan.best.predictions[0].excess_risk for plan in plans]
    axes.plot(epsilons, risks, marker="o", label=method)
axes.set(xscale="log", yscale="log", xlabel="ε at δ = 10⁻⁶", ylabel="predicted excess risk")
axes.axhline(problem.null_risk, color="0.6", linestyle=":", label="predicting the mean")
_ = axes.legend(loc="upper left", bbox_to_anchor=(1, 1))

# %%
print(plan_run(problem, budgets[3], methods=["least_squares", "adassp"]))

# %% [markdown]
# The excess risk is half the mean squared error of predictions beyond that of the best linear one.
# "± run" is its standard deviation over runs, "interval" the length of a 95 % interval for a
# slope, and "regret" the risk divided by the least risk.

# %% [markdown]
# ## A private fit
#
# Bounds come from public knowledge, never from the table; values outside are clipped, row by row.
# The table is synthetic: the true slopes are known. Frames of pandas and polars work like this
# Arrow table. Noise is secret: each build of this page has different numbers.

# %%
rng = np.random.default_rng(1)
rows = 10_000
size, year = rng.uniform(20, 200, rows), rng.integers(1950, 2020, rows)
rent = 200 + 9.0 * size + 2.0 * (year - 1985) + rng.normal(0, 150, rows)
flats = pa.table({"size": size, "year": year})

budget = Budget.approximate(epsilon=1.0, delta=1e-6)
ranges = {"size": (10, 300), "year": (1900, 2030)}
bounds = {"feature_bounds": ranges, "label_bounds": (0, 4000)}
model = PrivateLinearRegression(budget, **bounds).fit(flats, rent)
print(model.report())

# %% [markdown]
# The intervals for size and year should contain 9 and 2; one interval in twenty misses. "By noise"
# is privacy's share of the variance; if it is small, more rows help more than a larger budget. The
# last parts state the guarantee, the budget of each step and the settings.
#
# ## What do the error bars include?
#
# An interval allows for sampling and privacy noise. Least squares without privacy has shorter
# intervals; the difference in length is the cost of privacy.

# %% alt="Intervals for size and year, without and with privacy; private ones are longer"
intervals = model.confidence_intervals(level=0.95)
design = np.column_stack([size, year, np.ones(rows)])
coefficients, squares, *_ = np.linalg.lstsq(design, rent, rcond=None)
inverse = np.linalg.inv(design.T @ design)
errors = np.sqrt(squares[0] / (rows - 3) * np.diag(inverse))

figure, panels = plt.subplots(1, 2, figsize=(7, 3), layout="constrained")
for at, (name, truth) in enumerate([("size", 9.0), ("year", 2.0)]):
    panel, half = panels[at], intervals.length[at] / 2
    panel.errorbar([0], coefficients[at], 1.96 * errors[at], fmt="o", capsize=4)
    panel.errorbar([1], model.coef_[at], half, fmt="s", capsize=4)
    panel.axhline(truth, color="0.6", linestyle=":")
    panel.set(title=name, xlim=(-0.5, 1.5))
    panel.set_xticks([0, 1], ["not private", "private"])
_ = panels[0].set_ylabel("coefficient, 95 % interval")

# %% [markdown]
# ## Predict, save and load
#
# A prediction interval contains a new flat's rent with the stated probability, on average over
# flats. A saved fit holds released values only. Neither costs further privacy.

# %%
new = pa.table({"size": [45, 80, 120], "year": [1960, 1990, 2015]})
found = model.prediction_intervals(new, level=0.9)
with tempfile.TemporaryDirectory() as folder:
    model.save(f"{folder}/fit.json")
    kept = PrivateLinearRegression.load(f"{folder}/fit.json")
pa.table({"rent": kept.predict(new), "lower": found.lower, "upper": found.upper}).to_pandas()

# %% [markdown]
# ## Two fits under one odometer
#
# Budgets of fits to one table add up. The odometer refuses a fit beyond its limit.

# %%
odometer = Odometer(limit=Budget.zcdp(0.05))
given = {"odometer": odometer, **bounds}
for target in ("least_squares", "huber"):
    model = PrivateLinearRegression(Budget.zcdp(0.02), target=target, **given)
    model.fit(flats, rent)
print(f"spent: {odometer.total.rho:.2f}, left: {odometer.left.rho:.2f}")

# %% [markdown]
# ## Persons with several rows
#
# With `groups`, the guarantee covers all flats of one landlord together, not only one flat.

# %%
landlord = rng.integers(5_000, size=rows)
model = PrivateLinearRegression(budget, **bounds)
print(model.fit(flats, rent, groups=landlord).summary())

# %% [markdown]
# ## A real table of few rows
#
# scikit-learn ships the age, body mass index, mean blood pressure and disease progression of 442
# patients with diabetes. Its documentation gives 25 to 346 as the range of the progression. The
# other bounds come from physiology. A small table needs a large budget. In 30 fits at ε = 1, all
# intervals were infinite. In 30 fits at ε = 8, a weak guarantee, the intervals of the slopes of
# body mass index and blood pressure always excluded 0.

# %%
patients = load_diabetes(as_frame=True, scaled=False)
ranges = {"age": (0, 120), "bmi": (10, 70), "bp": (40, 200)}
features, progression = patients.data[list(ranges)], patients.target
bounds = {"feature_bounds": ranges, "label_bounds": (25, 346)}
model = PrivateLinearRegression(epsilon=8, delta=1e-6, **bounds)
print(model.fit(features, progression).summary())
exact = LinearRegression().fit(features, progression).coef_
print("Least squares without privacy:", exact.round(2))

# %% [markdown]
# Next: [your own table](your-own-table.html). This page's [script](tutorial.py) runs in a checkout.
