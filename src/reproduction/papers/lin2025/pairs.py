"""Records of one repetition, and the search among them for the pair that loses most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from reproduction.engine import quantities as q
from reproduction.engine.parameters import Strict
from reproduction.papers.lin2025.setting import Design

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from privreg.theory.noisy_sgd.diffusion import HomogenisedSGD, RidgeRegression
    from privreg.theory.noisy_sgd.worst_pairs import PairSearch
    from reproduction.papers.lin2025.setting import Instance


class Searched(Strict):
    """The design, and what is known of the start."""

    design: Design
    drawn_start: q.Flag = Field(
        False,
        description="The start's law N(0, I) counts as noise; equation (10) has a known start.",
    )

    def law(self, problem: RidgeRegression, gradient_noise_std: float) -> HomogenisedSGD:
        """Law of the diffusion on one problem."""
        law = self.design.law(problem, gradient_noise_std)
        if not self.drawn_start:
            return law
        from reproduction.papers.lin2025.drawn_start import DrawnStart

        return DrawnStart(
            law.problem,
            law.schedule,
            gradient_noise_std=law.gradient_noise_std,
            horizon=law.horizon,
        )


@dataclass(frozen=True)
class Records:
    """Features, one row a record in the eigenbasis, and labels."""

    rows: np.ndarray
    labels: np.ndarray

    @classmethod
    def draw(cls, design: Design, instance: Instance, rng: np.random.Generator) -> Records:
        rows, labels = instance.records.sample(design.sample_size, rng)
        return cls(instance.basis.coordinates(rows), labels)

    def __getitem__(self, kept: np.ndarray) -> Records:
        return Records(self.rows[kept], self.labels[kept])

    def candidates(self, law: HomogenisedSGD, count: int) -> np.ndarray:
        """Indices of the records that a search holds: gradients at means from start to limit."""
        from privreg.theory.noisy_sgd.pair_proxies import candidate_records

        references = law.mean(np.linspace(0.0, 1.0, 5) ** 2 * law.horizon)
        return candidate_records(self.rows, self.labels, references, count=count)

    def search(self, law: HomogenisedSGD) -> PairSearch:
        """A search over all their pairs."""
        from privreg.theory.noisy_sgd.worst_pairs import PairSearch

        return PairSearch(law, self.rows, self.labels)

    def gradient_gap(self, references: np.ndarray, ridge: ArrayLike = 0.0) -> np.ndarray:
        """Distance of the gradients of each pair at each point."""
        from privreg.theory.noisy_sgd.pair_proxies import pair_gradient_gap

        return pair_gradient_gap(self.rows, self.labels, references, ridge=ridge)
