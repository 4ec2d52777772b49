"""MNIST, all ten digits: the files of `privreg.data.mnist` with other labels."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from privreg.data import mnist
from privreg.data.tables import Table

NAME = "mnist_digits"
# Rows for training, and official test rows.
ROWS = (60_000, 10_000)
SOURCE = "MNIST handwritten digits (LeCun and Cortes), the four original IDX files"
MIRRORS = mnist.MIRRORS
FILES = mnist.FILES


def table(contents: Mapping[str, bytes]) -> Table:
    """Table of all images: first the training images, then the official test ones."""
    images, digits, test = mnist.read_images(contents)
    return mnist.image_table(NAME, SOURCE, images, digits.astype(np.float64), test)
