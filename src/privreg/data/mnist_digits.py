"""MNIST, all ten digits: the files of `privreg.data.mnist` with other labels."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from privreg.data import mnist
from privreg.data.tables import DataError, Table

NAME = "mnist_digits"
# Rows for training, and official test rows.
ROWS = (60_000, 10_000)
SOURCE = "MNIST handwritten digits (LeCun and Cortes), the four original IDX files"
MIRRORS = mnist.MIRRORS
FILES = mnist.FILES


def table(contents: Mapping[str, bytes]) -> Table:
    """Table of all images: first the training images, then the official test ones."""
    train_images, train_labels, test_images, test_labels = (
        mnist.read_idx(contents[file.path], file.name) for file in FILES
    )
    for images, labels in ((train_images, train_labels), (test_images, test_labels)):
        if images.ndim != 3 or labels.shape != images.shape[:1]:
            raise DataError(
                f"MNIST: images {images.shape}, labels {labels.shape}, "
                "expected (n, 28, 28) and (n,)"
            )
    images = np.concatenate([train_images, test_images])
    labels = np.concatenate([train_labels, test_labels])
    count, height, width = images.shape
    return Table(
        name=NAME,
        features=images.reshape(count, -1),
        labels=labels.astype(np.float64),
        feature_names=tuple(f"pixel_{row}_{col}" for row in range(height) for col in range(width)),
        official_test=np.arange(count) >= train_labels.size,
        source=SOURCE,
        checksums={file.name: file.sha256 for file in FILES},
        feature_scale=mnist.LARGEST_GREY_VALUE,
    )
