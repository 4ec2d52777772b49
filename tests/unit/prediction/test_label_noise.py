"""Laws of the label noise as mixtures of Gaussians."""

import numpy as np
import pytest
from scipy import integrate, stats

from privreg.prediction.clipping import noise_moments
from privreg.prediction.label_noise import DEGREES, squared_scales
from privreg.prediction.problem import LABEL_NOISE_LAWS


@pytest.mark.parametrize("law", LABEL_NOISE_LAWS)
def test_the_scales_have_mean_square_one(law):
    squares, weights = squared_scales(law)
    assert weights.sum() == pytest.approx(1, abs=1e-12)
    assert squares @ weights == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("law", [*DEGREES, "laplace"])
@pytest.mark.parametrize("width", [0.25, 1.0, 3.0])
def test_what_clipping_leaves_is_that_of_the_law(law, width):
    """Cells of the scale are worth 1 % of each moment; Gaussian noise would be off by 10 %."""
    if law == "laplace":
        student = stats.laplace(scale=np.sqrt(0.5))
    else:
        degrees = DEGREES[law]
        student = stats.t(degrees, scale=np.sqrt((degrees - 2) / degrees))
    share = 1 - 2 * student.sf(width)
    inside = integrate.quad(lambda r: r**2 * student.pdf(r), -width, width)[0]
    found = noise_moments(np.array(width), label_noise_std=1.0, law=law)
    assert found[0] == pytest.approx(share, rel=0.01)
    assert found[1] == pytest.approx(inside + width**2 * (1 - share), rel=0.011)


def test_an_error_of_the_prediction_adds_its_variance():
    found = noise_moments(np.array(1.3), label_noise_std=0.6, other_variance=0.64)
    assert found == pytest.approx(noise_moments(np.array(1.3), label_noise_std=1.0), rel=1e-12)
