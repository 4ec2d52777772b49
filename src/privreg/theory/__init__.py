"""What an algorithm does in a limit or in law, computed without running it, one theory a file."""
