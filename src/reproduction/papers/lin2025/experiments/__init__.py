"""The experiments of lin2025, one recipe a file."""
