"""Profiles: what they say of rules is said of the rules that there are."""

import re
import subprocess
import sys

import yaml


def test_every_job_that_is_never_sent_to_a_cluster_is_counted(request):
    root = request.config.rootpath
    local = set()
    for path in (root / "workflow/rules").glob("*.smk"):
        for rule in re.split(r"^(?=(?:use )?rule )", path.read_text("utf-8"), flags=re.MULTILINE):
            if "localrule: True" in rule:
                local.add(re.match(r"rule (\w+)", rule)[1])
    assert "judge" in local
    profile = yaml.safe_load((root / "profiles/slurm/config.yaml").read_text("utf-8"))
    # It uses the rule `judge`.
    local.add("claim")
    assert {f"{rule}:local_jobs=1" for rule in local} == {*profile["set-resources"]}


def test_slurm_without_its_plugin_is_one_line(request):
    # None in the place of a module: `find_spec` finds no plugin, installed or not.
    root = request.config.rootpath
    code = "import sys; sys.modules['snakemake_executor_plugin_slurm'] = None; "
    code += "from snakemake.cli import main; main(['--profile', 'profiles/slurm', '--dry-run'])"
    command = [sys.executable, "-c", code]
    ran = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.splitlines()[-1].startswith("error: SLURM needs `make cluster` first")
    assert "usage" not in ran.stderr
