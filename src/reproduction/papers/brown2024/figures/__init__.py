"""Figures of brown2024, each drawn from artifacts alone."""

from reproduction.papers.brown2024.figures.clipping import against_shares as fig7
from reproduction.papers.brown2024.figures.clipping import bias_and_variance as fig4
from reproduction.papers.brown2024.figures.clipping import shares as fig3
from reproduction.papers.brown2024.figures.intervals import coverage as fig5
from reproduction.papers.brown2024.figures.intervals import coverage as fig10
from reproduction.papers.brown2024.figures.intervals import length as fig6
from reproduction.papers.brown2024.figures.intervals import length as fig11
from reproduction.papers.brown2024.figures.sizes import fixed_ratio as fig1
from reproduction.papers.brown2024.figures.sizes import fixed_ratio as fig9
from reproduction.papers.brown2024.figures.sizes import large_budget as fig2
from reproduction.papers.brown2024.figures.sizes import standard_budget as fig8

__all__ = ["fig1", "fig2", "fig3", "fig4", "fig5", "fig6", "fig7", "fig8", "fig9", "fig10", "fig11"]
