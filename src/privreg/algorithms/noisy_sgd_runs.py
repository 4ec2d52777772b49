"""What several settings of noisy SGD on the same records end with."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from privreg.immutable import Rebuilt, frozen
from privreg.privacy import assumptions
from privreg.privacy.budget import Budget
from privreg.privacy.neighbours import Neighbours
from privreg.privacy.one_of_many import OneOfMany
from privreg.privacy.release import Diagnostic, Release


@dataclass(frozen=True, eq=False)
class NoisySGDRuns(Rebuilt):
    """Runs of noisy SGD at S noise scales and C clipping norms on the same records and noise.

    Attributes
    ----------
    iterate : ndarray, shape (S, C, d)
        The last iterates, for studies; `release` hands out that of one setting.
    risk : Diagnostic of ndarray, shape (S, C, n + 1)
        Population risk before the first step and after each.
    clipped_fraction : Diagnostic of ndarray, shape (S, C)
        Share of the n gradients that were longer than the clipping norm.
    gradient_noise_stds : ndarray, shape (S,)
    clip_norms : ndarray, shape (C,)
    """

    iterate: NDArray[np.float64]
    risk: Diagnostic[NDArray[np.float64]]
    clipped_fraction: Diagnostic[NDArray[np.float64]]
    gradient_noise_stds: NDArray[np.float64]
    clip_norms: NDArray[np.float64]
    _settings: OneOfMany = field(repr=False)

    def __post_init__(self) -> None:
        # A release is accounted with these numbers.
        for name in ("gradient_noise_stds", "clip_norms"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    def release(
        self,
        setting: tuple[int, int] | None = None,
        *,
        neighbours: Neighbours | str = Neighbours.REPLACE_ONE,
    ) -> Release[NDArray[np.float64]]:
        r"""The last iterate of one setting, with what all its iterates together cost.

        .. math:: \rho = 2c^2/\sigma^2

        for replace-one neighbours, and for zero-out ones too, since the gradient of a blank still
        holds the penalty's.

        Parameters
        ----------
        setting : (int, int), optional
            Indices of the noise scale and of the clipping norm; may be left out where there is one
            of each.
        neighbours : Neighbours
            Replace-one or zero-out: records keep their places.

        Returns
        -------
        Release
            Of the iterate, shape (d,).

        Raises
        ------
        ValueError
            If another setting was released before, this one has no noise, or any setting of the
            run has no clipping.
        """
        relation = Neighbours(neighbours)
        if relation is Neighbours.ADD_REMOVE:
            raise ValueError(
                "neighbours must be 'replace-one' or 'zero-out', got 'add-remove': a record more "
                "would move the later ones to other steps"
            )
        if not np.all(np.isfinite(self.clip_norms)):
            # A record that nothing clips can end the run, and with it every other setting.
            raise ValueError(
                "setting must be of a run with finite clip_norms throughout for a release"
            )
        index = self._settings.take(setting)
        noise = float(self.gradient_noise_stds[index[0]])
        norm = float(self.clip_norms[index[1]])
        if not noise > 0:
            raise ValueError(f"setting must have noise for a release, got {noise:g}")
        budget = Budget(2 * (norm / noise) ** 2, relation)
        return Release(self.iterate[index], budget, assumptions.USUAL)
