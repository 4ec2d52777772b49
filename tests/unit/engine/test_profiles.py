"""Profiles: what they say of rules is said of the rules that there are."""

import re

import yaml


def test_every_job_that_is_never_sent_to_a_cluster_is_counted(request):
    root = request.config.rootpath
    rules = (root / "workflow/rules/common.smk").read_text(encoding="utf-8")
    local = re.findall(r"\w+", re.search(r"\nlocalrules:([\s\w,]+)\n\n", rules)[1])
    assert "judge" in local
    (file,) = (root / "profiles/slurm").iterdir()
    profile = yaml.safe_load(file.read_text(encoding="utf-8"))
    assert profile["set-resources"] == [f"{rule}:local_jobs=1" for rule in local]
