"""The experiments of brown2024, one recipe a file."""
