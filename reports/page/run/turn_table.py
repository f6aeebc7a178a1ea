"""The table of the turns of a run in the page, and what the user saw of each."""

from collections.abc import Iterator, Mapping

from wedgehog.harness.record.history import History
from wedgehog.harness.record.turn_outcome import outcome_of
from wedgehog.harness.record.views import Turn
from wedgehog.reports.markup import Markup, html_table, line, tag
from wedgehog.reports.words import count, one_line, seconds

TEXT_SHOWN = 4_000
"""So many characters of an answer or an error are in the page."""
_COLUMNS = (("turn", "keep"), ("message", "says"), ("outcome", "keep"), ("seen by", "says"), ("took", "n"))

_TOOK = (
    "The time of a turn counts from its first request. Without a request it counts from the time at which this agent's "
    "first request usually comes."
)


def turn_table(history: History, pages: Mapping[int, Markup | None]) -> Iterator[Markup | None]:
    """All turns of a run; `pages` are pictures of the agent's page, by the number of the turn."""
    yield html_table(_COLUMNS, [line(_COLUMNS, _row(turn, history)) for turn in history.turns])
    yield tag("p", _TOOK, class_="soft")
    yield from (_seen(turn, pages.get(turn.number)) for turn in history.turns)


def _row(turn: Turn, history: History) -> tuple[object, ...]:
    came, stimulus = outcome_of(turn, history), turn.stimulus
    message = f"{stimulus.stimulus.replace('_', ' ')}: {one_line(stimulus.text, 160)}" if stimulus else ""
    message = f"session {turn.session}, {message}" if len(history.sessions) > 1 else message
    how = came.how + (f". {came.remark}" if came.remark else "")
    return ("recovery" if turn.recovery else turn.number, message, came.kind, how, seconds(turn.duration_s))


def _seen(turn: Turn, page: Markup | None) -> Markup | None:
    end = turn.end
    if end is None:
        return None
    exit_ = [
        f"exit code {end.exit_code}" if end.exit_code is not None else "",
        f"HTTP {end.status}" if end.status is not None else "",
        f"raised {one_line(end.raised, 160)}" if end.raised else "",
    ]
    error = "error output" if end.exit_code == 0 else "error"
    stderr = "stderr, also of a turn of another session" if end.shared else "stderr"
    parts = (("answer", end.answer), (error, end.error), (stderr, end.stderr if end.stderr != end.error else ""))
    boxes = [(tag("p", name, class_="soft"), tag("pre", _excerpt(said))) for name, said in parts if said.strip()]
    signs = ", ".join(part for part in [f"ended: {end.ended}", *exit_] if part)
    head = tag("summary", f"What the user saw of {turn}: {signs}")
    return tag("details", head, page, boxes or (None if page else tag("p", "Nothing.", class_="soft")), class_="more")


def _excerpt(said: str) -> str:
    more = len(said) - TEXT_SHOWN
    return said if more <= 0 else f"{said[:TEXT_SHOWN]}\n… {count(more)} more characters in history.jsonl"
