"""One run from start to verdict, and campaigns of many runs."""
