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

from privreg import Budget, Odometer, PrivateLinearRegression, Problem, plan_run

# %% [markdown]
# ## How accurate is a fit at a given budget?
#
# A plan does not read the table. It needs the numbers of rows and features, the strength of the
# signal and the size of the errors.

# %%
problem = Problem(10_000, np.ones(4), signal=1.0, label_noise_std=1.0)
epsilons = [0.1, 0.2, 0.5, 1.0, 2.0, 4.0]
methods = ["least_squares", "huber", "adassp"]
plans = [plan_run(problem, Budget.approximate(each, 1e-6), methods=methods) for each in epsilons]

figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
for method in methods:
    risks = [
        next(each.predictions[0].excess_risk for each in plan.alternatives if each.name == method)
        for plan in plans
    ]
    axes.plot(epsilons, risks, marker="o", label=method)
axes.set(xscale="log", yscale="log", xlabel="ε at δ = 10⁻⁶", ylabel="predicted excess risk")
axes.axhline(0.5, color="0.6", linestyle=":", label="predicting the mean")
_ = axes.legend()

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
bounds = {"feature_bounds": {"size": (10, 300), "year": (1900, 2030)}, "label_bounds": (0, 4000)}
model = PrivateLinearRegression(budget, **bounds).fit(flats, rent)
print(model.report())

# %% [markdown]
# ## What do the error bars include?
#
# An interval includes sampling and privacy noise. The cost of privacy is the difference in length
# from least squares without privacy.

# %%
intervals = model.confidence_intervals(level=0.95)
design = np.column_stack([size, year, np.ones(rows)])
coefficients, residual_sum, *_ = np.linalg.lstsq(design, rent, rcond=None)
errors = np.sqrt(residual_sum[0] / (rows - 3) * np.diag(np.linalg.inv(design.T @ design)))

figure, panels = plt.subplots(1, 2, figsize=(7, 3), layout="constrained")
for panel, at, name, truth in zip(panels, (0, 1), ("size", "year"), (9.0, 2.0), strict=True):
    panel.errorbar([0], [coefficients[at]], 1.96 * errors[at], fmt="o", capsize=4)
    panel.errorbar([1], [model.coef_[at]], intervals.length[at] / 2, fmt="s", capsize=4)
    panel.axhline(truth, color="0.6", linestyle=":")
    panel.set(title=name, xticks=[0, 1], xticklabels=["not private", "private"], xlim=(-0.5, 1.5))
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
odometer, each = Odometer(limit=Budget.zcdp(0.05)), Budget.zcdp(0.02)
for target in ("least_squares", "huber"):
    PrivateLinearRegression(each, target=target, odometer=odometer, **bounds).fit(flats, rent)
print(f"spent: rho = {odometer.total.rho:.2f}, left: rho = {odometer.left.rho:.2f}")

# %% [markdown]
# ## Persons with several rows
#
# With `groups`, privacy protects all flats of one landlord together, not only one flat.

# %%
landlord = rng.integers(5_000, size=rows)
print(PrivateLinearRegression(budget, **bounds).fit(flats, rent, groups=landlord).summary())

# %% [markdown]
# [Your own table](your-own-table.html) adds files, weights, categories and the command line.
