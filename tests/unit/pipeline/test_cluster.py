import os

import pytest

from reproduction.engine.parameters import ConfigError
from reproduction.pipeline.cluster import require_known


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """Makes commands of SLURM that print given lines and end with given statuses."""

    def make(**commands):
        for name, (lines, status) in commands.items():
            command = tmp_path / name
            command.write_text(f"#!/bin/sh\nprintf '{lines}'\nexit {status}\n")
            command.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/bin")

    return make


ASKED = {"slurm_partition": "short", "slurm_account": "physics", "tmpdir": "anywhere"}


def test_what_slurm_has_is_accepted(slurm):
    slurm(sinfo=(r"long\nshort\n", 0), sacctmgr=(r"physics\nphysics\n", 0))
    require_known(ASKED)
    require_known(ASKED | {"slurm_partition": "long,short"})
    require_known({"slurm_partition": None})
    require_known({"slurm_partition": "'long' if attempt > 1 else 'short'"})


@pytest.mark.parametrize(
    ("name", "value", "nearest"),
    [
        ("slurm_partition", "shrot", "short"),
        ("slurm_partition", "long,shrot", "short"),
        ("slurm_account", "physic", "physics"),
    ],
)
def test_what_it_does_not_have_is_refused_with_the_nearest_name(slurm, name, value, nearest):
    slurm(sinfo=(r"long\nshort\n", 0), sacctmgr=(r"physics\n", 0))
    with pytest.raises(ConfigError, match=f"^{name} must be .*did you mean '{nearest}'"):
        require_known(ASKED | {name: value})


@pytest.mark.parametrize("commands", [{}, {"sinfo": ("none", 1), "sacctmgr": ("none", 1)}])
def test_what_it_does_not_list_is_left_to_slurm(slurm, commands):
    slurm(**commands)
    require_known(ASKED)
