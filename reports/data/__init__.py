"""Runs for other programs: traces, Parquet, DataFrames."""
