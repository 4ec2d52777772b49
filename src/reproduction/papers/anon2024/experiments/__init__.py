"""Experiments of anon2024, one file each. The paper runs none; its rates and bounds are its own."""
