"""From the history to a verdict: the judge, its doubts about the faults, and remarks that change no verdict."""
