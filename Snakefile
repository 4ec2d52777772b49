# The workflow lies below workflow/; `snakemake` looks for it here. README.md says how to use it.
include: "workflow/Snakefile"
