"""Types of what stages read and figures draw on, for annotations: to import them costs nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Figure
    from xarray import DataArray as DataArray
    from xarray import Dataset as Dataset

    from reproduction.experiment.trials import Trial as Trial
    from reproduction.experiment.trials import Trials as Trials
else:
    Axes = Figure = DataArray = Dataset = Trial = Trials = Any
