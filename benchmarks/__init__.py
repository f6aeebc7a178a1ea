"""Benchmarks; run them with `nox -s bench`."""
