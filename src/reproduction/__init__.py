"""The five papers rebuilt with the library: experiments, ledgers, studies and the workflow."""
