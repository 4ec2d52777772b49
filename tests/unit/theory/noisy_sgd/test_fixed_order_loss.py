"""The exact loss with the records held fixed against two dense recursions."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from privreg.theory.noisy_sgd.fixed_order_loss import fixed_order_divergence

Array = NDArray[np.float64]


def test_a_covariance_without_full_rank_is_refused() -> None:
    """Steps of ever other sizes left 1e-17 of a variance: a loss was 1e70 that is infinite."""
    with pytest.raises(ValueError, match="double precision"):
        fixed_order_divergence(
            [
                [0.00021158307742062343, 0.02665424485970391],
                [5.150952648550863e-05, -0.0004209687182528405],
                [-0.0005954802595769051, -4.2063202473996296e-05],
                [-0.0193640743446377, -0.00032770321207174026],
            ],
            [3.9e-74, -2.0e-74, 5.3e-75, -2.4e-74],
            initial=[4.35e-38, 4.37e-38],
            positions=[2],
            replacement_features=[[-0.191732919759509, -0.4133657303489195]],
            replacement_labels=[-4.1728443974904474e98],
            release_steps=[4],
            step_sizes=[
                4.6711851991811284e29,
                7.355381061546555e19,
                2673.042790681627,
                6.112411891085738e21,
            ],
            gradient_noise_std=1.1412380755472891e21,
            ridge=0.0,
            order=1.2654832027987837,
        )
