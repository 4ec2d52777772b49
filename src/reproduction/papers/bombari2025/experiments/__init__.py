"""The experiments of bombari2025, one recipe a file."""
