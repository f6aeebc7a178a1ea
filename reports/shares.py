"""How agents bear harm that passes, and harm that stays: who answers all the same, and who pays for nothing.

A transient fault is gone at the next try, so an error, though seen, is a turn lost; a permanent one is still there, so
each further try is money lost. Scenarios say which is which by a tag.
"""

from collections.abc import Callable

import pandas as pd

from wedgehog.reports.campaign_folder import agent_order
from wedgehog.reports.words import many

TRANSIENT, PERMANENT = "transient", "permanent"


def shares(table: pd.DataFrame) -> list[str]:
    """A line for each kind of harm that struck, agent by agent; none where no scenario has such a tag.

    `answered under transient faults: codex 9 of 11, pi 11 of 11`
    """
    if not len(table):
        return []
    told = table["harmed_answered"].notna()
    lines = (
        ("answered under transient faults", _of(table[told], TRANSIENT, _answered)),
        ("paid under permanent faults", _of(table, PERMANENT, _paid)),
    )
    return [f"{what}: {', '.join(words)}" for what, words in lines if words]


def _of(table: pd.DataFrame, tag: str, says: Callable[[pd.DataFrame], str]) -> list[str]:
    tagged = table["tags"].map(lambda tags: tag in tags.split(";")).astype(bool)
    decided = table["verdict"].isin(("pass", "fail"))
    struck = table[tagged & decided & (table["faults_fired"] > 0) & (table["standing"] != "shown")]
    agents = sorted((str(name) for name in struck["agent"].unique()), key=agent_order)
    return [f"{agent} {says(struck[struck['agent'] == agent])}" for agent in agents]


def _answered(runs: pd.DataFrame) -> str:
    return f"{int(runs['harmed_answered'].sum())} of {len(runs)}"


def _paid(runs: pd.DataFrame) -> str:
    return f"{many(int(runs['paid_calls'].sum()), 'call')} in {many(len(runs), 'run')}"
