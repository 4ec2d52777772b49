# `snakemake` looks here; the workflow lies below workflow/. README.md says how to use it.
include: "workflow/Snakefile"


rule default:
    """All that `snakemake` makes without a target."""
    default_target: True
    input:
        rules.all.input,
