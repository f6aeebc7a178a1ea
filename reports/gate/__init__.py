"""Compares two sides: a run with its baseline, or two runs, versions or agents."""
