"""The papers, one package each: experiments, figures and tables."""
