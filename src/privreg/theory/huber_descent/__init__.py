"""Private Huber regression: matrices seen through known noise, and the law of its last iterate."""
