"""The memory of past outcomes: points, densities, estimates, forgetting."""
