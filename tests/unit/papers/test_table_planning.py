"""Choices of the labels that a table has not are refused before a job reads it."""

import pytest
from pydantic import ValidationError

from reproduction.studies.experiments.table_planning import Parameters

VALID = {"dataset": "mnist_digits", "components": 5, "sample_size": 500, "budgets": [0.2]}


def test_what_a_table_has_is_accepted():
    assert Parameters(**VALID, pairs=[[3, 8], [4, 9]]).pairs == [(3, 8), (4, 9)]
    assert Parameters(**VALID | {"dataset": "california_housing"}, columns=[0, 7]).columns == [0, 7]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"pairs": [[3, 3]]}, "two digits each"),
        ({"pairs": [[3, 10]]}, "less than or equal to 9"),
        ({"pairs": [[3, 8]], "dataset": "mnist"}, "left out of tables other than mnist_digits"),
        ({"columns": [8]}, "less than or equal to 7"),
        ({"columns": ["MedInc"]}, "valid integer"),
    ],
)
def test_what_it_has_not_is_refused(wrong, said):
    with pytest.raises(ValidationError, match=said):
        Parameters(**VALID | wrong)
