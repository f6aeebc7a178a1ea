"""What was executed: the agent's program, its version, and the arguments of each start."""

import shlex
from collections.abc import Iterator, Sequence

from wedgehog.harness.record.events.run import AgentStarted
from wedgehog.harness.record.history import History
from wedgehog.reports.markup import Markup, tag
from wedgehog.reports.words import many, one_line, seconds

STARTS_SHOWN, CLIENTS_SHOWN = 12, 4
UNKNOWN = "not known"
NO_CLIENT = f"{UNKNOWN}: they have no User-Agent"


def what_ran(history: History) -> Markup | None:
    """The section; None if the agent was not started."""
    starts = list(history.of(AgentStarted))
    if not starts:
        return None
    shown = [tag("div", tag("dt", name), tag("dd", tag("code", value))) for name, value in _pairs(starts, history)]
    return tag("div", tag("h4", "What was executed"), tag("dl", shown, class_="stack"), _each(starts))


def _pairs(starts: Sequence[AgentStarted], history: History) -> Iterator[tuple[str, str]]:
    first = starts[0]
    clients = dict.fromkeys(one_line(it.arrived.user_agent, 120) for it in history.calls if it.arrived.user_agent)
    yield "command", shlex.join(first.argv)
    yield "executable, links resolved", first.executable
    yield (
        "version of the agent's package",
        first.version or f"{UNKNOWN}: its entry file belongs to no installed package",
    )
    if first.interpreter:
        yield "interpreter", first.interpreter
    if first.source:
        yield "source tree of the entry file", first.source
    yield (
        "client that its requests name",
        ", ".join([*clients][:CLIENTS_SHOWN]) or NO_CLIENT,
    )
    if first.entry:
        yield "entry file", first.entry
        yield "SHA-256 of that file", first.entry_hash or UNKNOWN
    yield "started", many(len(starts), "time")
    yield "run began", history.run.started


def _each(starts: Sequence[AgentStarted]) -> Markup | None:
    """The folded list of all starts, with what differs from the first."""
    if len(starts) < 2:
        return None
    first = starts[0]
    more = len(starts) - STARTS_SHOWN
    items = [tag("li", _one(number, it, first)) for number, it in enumerate(starts[:STARTS_SHOWN], 1)]
    rest = tag("p", f"{many(more, 'more start')} in history.jsonl", class_="soft") if more > 0 else None
    return tag("details", tag("summary", "Each start"), tag("ul", items, class_="bullets"), rest, class_="more")


def _one(number: int, it: AgentStarted, first: AgentStarted) -> list[object]:
    file = "" if it.entry_hash == first.entry_hash else f"; the entry file's SHA-256 is {it.entry_hash or UNKNOWN}"
    alike = it.argv == first.argv and number > 1
    command = "the same command" if alike else tag("code", shlex.join(it.argv))
    when = f"recorded at {seconds(max(0.0, it.at_s))}" if it.began_s is None else f"at {seconds(it.began_s)}"
    return [f"start {number}, {when}, pid {it.pid or UNKNOWN}: ", command, file]
