"""How long its user waited: for the turn, for the first sign of an error, and for the answer after healing.

Of the turns' time, what our database took stands beside it: how many queries, and their share (0 to 1).

Times are as measured. An incident's own number stands beside them, in the report's words: scaled durations are never
multiplied back, since an SDK's back-off does not scale.
"""

import pandas as pd

NUMBERS = ("turn_s", "first_error_s", "recovery_s", "queries", "queries_s", "queries_share")


def latency(table: pd.DataFrame) -> pd.DataFrame:
    """One row per scenario and agent that was played; of repeats, the longest that was measured of each time."""
    played = table[table["verdict"] != "skipped"]
    if not len(played):
        return pd.DataFrame(columns=["scenario", "agent", *NUMBERS, "report_number"])
    values = played[["scenario", "agent", "report_number"]].join(played[list(NUMBERS)].astype(float))
    grouped = values.groupby(["scenario", "agent"], sort=False)
    return grouped.agg({**dict.fromkeys(NUMBERS, "max"), "report_number": "first"}).reset_index()
