"""What happens to a vector: sections 3.2–3.5 of the paper, on integers."""
