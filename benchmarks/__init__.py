"""What things cost: run with `nox -s bench`."""
