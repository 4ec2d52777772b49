"""What error a private run will have, before any budget is spent."""
