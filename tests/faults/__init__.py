"""Faults: kills, damage, full disks, strange places."""
