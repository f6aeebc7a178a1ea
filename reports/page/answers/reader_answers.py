"""What a reader asks first of any run, answered in one place: a list of short answers beside their questions."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path

from wedgehog.harness.record.error_words import plain
from wedgehog.harness.record.events.run import AgentStarted, ConnectionsWatched, HostRefused
from wedgehog.harness.record.events.service import PageAsked, ToolAsked
from wedgehog.harness.record.history import History
from wedgehog.harness.record.ledger import ledger_of
from wedgehog.harness.record.store import StoredRun
from wedgehog.harness.record.turn_outcome import LATE_ERROR, answers, outcome_of
from wedgehog.harness.record.views import Call, Turn
from wedgehog.reports.calls import place
from wedgehog.reports.history_numbers import first_error
from wedgehog.reports.markup import Markup, tag
from wedgehog.reports.page.answers.hang_ups import hang_ups, timers_fired
from wedgehog.reports.page.answers.history_changes import compared, left_open, named, removals
from wedgehog.reports.page.answers.named_limits import error_end, limits
from wedgehog.reports.page.answers.own_counts import counted_files, database_share, own_counts
from wedgehog.reports.page.answers.related_runs import RelatedRuns, RelatedTo
from wedgehog.reports.page.answers.sentences import Sentence
from wedgehog.reports.page.answers.session_files import session_answers
from wedgehog.reports.page.answers.turn_exits import exits_compared, turn_exit
from wedgehog.reports.tool_runs import tool_calls
from wedgehog.reports.words import count, least_money, many, money, one_line, seconds

IDS_SHOWN = 8
AT_MOST = 5
"""So many sentences of one answer are shown; the rest is counted."""


def reader_answers(run: StoredRun, related: RelatedRuns) -> Markup | None:
    """The list; None for a run without a turn."""
    if not run.history.turns:
        return None
    pairs = [(name, list(said)) for name, said in _Answers(run, related.of(run)).all()]
    items = [tag("div", tag("dt", name), tag("dd", _sentences(said))) for name, said in pairs if said]
    return tag("div", tag("h4", "What a reader asks"), tag("dl", items, class_="stack answers"))


def _sentences(said: Sequence[Sentence]) -> list[Markup]:
    more: list[Sentence] = [f"… and {len(said) - AT_MOST:,} more."] if len(said) > AT_MOST else []
    return [tag("div", it) for it in [*said[:AT_MOST], *more]]


@dataclass(frozen=True)
class _Answers:
    run: StoredRun
    others: RelatedTo

    @cached_property
    def history(self) -> History:
        return self.run.history

    def all(self) -> Iterator[tuple[str, Iterable[Sentence]]]:
        files = counted_files(self.run)
        yield "Was each message answered once?", self.answered()
        yield "Time to the first error, and to recovery", self.times()
        yield "Inactivity, or the whole call?", self.hang_ups()
        yield "What did the history keep?", self.kept()
        yield "Tool calls left without a result", self.left_open()
        yield "Do its exits leave the same history?", self.exits()
        yield "What does the session file hold?", session_answers(self.run)
        yield "Ids of tool calls on the wire", self.wire_ids()
        yield "Did a tool call run again?", self.repeated()
        yield "Paid calls by provider and model", self.models()
        yield "Did a limit of its own stop it?", self.limits()
        yield "What the agent counted itself", own_counts(self.history, files)
        yield "Database", database_share(self.history, files)
        yield "Other hosts", self.hosts()

    # ---- messages

    def answered(self) -> Iterator[str]:
        said = [(self._times_answered(turn), turn) for turn in self.history.turns if turn.stimulus is not None]
        for words, group in groupby(said, key=lambda pair: pair[0]):
            turns = [turn for _, turn in group]
            which = str(turns[0]) if len(turns) == 1 else f"{turns[0]} to {turns[-1]}, each"
            yield f"{which[0].upper()}{which[1:]}: {words}."

    def _times_answered(self, turn: Turn) -> str:
        nonce = plain(turn.stimulus.nonce) if turn.stimulus else ""
        ends = [it.end.answer for it in self.history.turns if it.end is not None and answers(turn, it)]
        times = sum(plain(answer).count(nonce) for answer in ends) if nonce else 0
        if not times:
            return f"not answered ({outcome_of(turn, self.history).kind})"
        return "answered once" if times == 1 else f"answered {times} times"

    def times(self) -> Iterator[str]:
        """Both times from the message, which the user knows, and from the first request, which tables count from."""
        failed = first_error(self.history)
        if failed is None and (turn := _told_its_stop(self.history)) is not None and turn.end is not None:
            words = one_line(turn.end.error, 120)
            yield f"First error: none but what it said of its user's stop, at the end of {turn}: “{words}”."
        elif failed is None and (turn := _with_late_error(self.history)) is not None:
            yield f"First error: after the deadline of {turn}, {_since(turn)}."
        else:
            yield f"First error: {_since(failed)}." if failed else "First error: the user saw none of the agent's own."
        tries = [turn for turn in self.history.turns if turn.recovery]
        answered = next((it for it in tries if outcome_of(it, self.history).kind == "answered"), None)
        if answered is not None:
            yield f"Recovery: the recovery message was answered {_since(answered)}."
        elif tries:
            yield f"Recovery: the recovery message had no answer; its turn ended {_since(tries[-1])}."

    # ---- calls

    def hang_ups(self) -> Iterator[Sentence]:
        """The other runs are read only where this one has a hang-up to explain."""
        if any(call.hung_up is not None and call.main and not call.stopped_by for call in self.history.calls):
            fired = timers_fired(self.run.judgement.remarks)
            yield from hang_ups(self.history, fired, self.others.slow_calls)

    def exits(self) -> Iterator[Sentence]:
        mine = turn_exit(self.history)
        yield from exits_compared(mine, self.others.exits if mine is not None else [])

    def limits(self) -> Iterator[Sentence]:
        others = self.others.errors if error_end(self.history) is not None else []
        yield from limits(self.history, self.run.judgement.remarks, others)

    def kept(self) -> Iterator[str]:
        if not (pairs := compared(self.history)):
            return
        if not (removed := removals(self.history)):
            lost = [use.token for use in tool_calls(self.history) if not use.results]
            but = f"; the results of {named(lost)} were never in one" if lost else ""
            requests = many(pairs, "later request")
            yield f"Nothing was removed: each of {requests} carried what the one before it carried{but}."
        yield from (f"{it[0].upper()}{it[1:]}." for it in removed)
        if any(call.main and call.arrived.open_calls is None for call in self.history.calls):
            yield "Only results and messages were compared: tool calls without a result were not recorded in this run."

    def left_open(self) -> Iterator[str]:
        """Of the first request after each turn that left some."""
        for before, call in self._first_requests():
            if open_ := left_open(call):
                yield f"The first request after turn {before} ({place(call)}) carried {open_} without a result."

    def _first_requests(self) -> Iterator[tuple[int, Call]]:
        for before, turn in zip(self.history.turns, self.history.turns[1:], strict=False):
            if turn.main_calls:
                yield before.number, turn.main_calls[0]

    def models(self) -> Iterator[str]:
        paid = [call for call in self.history.played_calls if call.paid]
        for wire in dict.fromkeys(call.arrived.wire for call in paid):
            mine = [call for call in paid if call.arrived.wire == wire]
            models = [*dict.fromkeys(call.arrived.model for call in mine)]
            more = f" and {len(models) - AT_MOST} more models" if len(models) > AT_MOST else ""
            spent = ledger_of(self.history, mine)
            least, usd = ("at least ", least_money) if self.history.cut_short else ("", money)
            yield (
                f"{wire}: {least}{many(len(mine), 'paid call')}, {count(spent.total.tokens_billed)} tokens billed, "
                f"simulated cost {usd(spent.cost_usd)}: "
                f"{'; '.join(self._model(it, mine) for it in models[:AT_MOST])}{more}."
            )

    def _model(self, model: str, calls: Sequence[Call]) -> str:
        mine = [call for call in calls if call.arrived.model == model]
        return f"{one_line(model, 40)} {many(len(mine), 'call')}, {money(ledger_of(self.history, mine).cost_usd)}"

    # ---- tools

    def wire_ids(self) -> Iterator[str]:
        """Our number of each tool call, and the id by which requests name it."""
        ids: dict[str, str] = {}
        for call in self.history.calls:
            carried = [(it.token, it.id) for it in call.arrived.results]
            carried += [(it.token, it.id) for it in call.arrived.open_calls or ()]
            ids |= {token: id_ for token, id_ in carried if token and id_ and token not in ids}
        pairs = [f"{token} = {one_line(id_, 60)}" for token, id_ in ids.items()]
        if pairs:
            more = f" and {len(pairs) - IDS_SHOWN:,} more in history.jsonl" if len(pairs) > IDS_SHOWN else ""
            yield f"{', '.join(pairs[:IDS_SHOWN])}{more}."
        unseen = [use.token for use in tool_calls(self.history) if use.token not in ids]
        if unseen:
            yield f"No request carried tool call {named(unseen)} again: only the reply that offered it names its id."

    def repeated(self) -> Iterator[str]:
        uses = tool_calls(self.history)
        asked = [event.token for event in self.history.of(ToolAsked) if event.token]
        ran = {use.token: max(len(use.started), asked.count(use.token)) for use in uses}
        seen = [token for token, times in ran.items() if times]
        again = [f"{token} ran {times} times" for token, times in ran.items() if times > 1]
        restarted = self._starts()
        if not uses:
            yield f"The model called no tool.{restarted}"
            return
        if again:
            yield f"Yes: {'; '.join(again[:AT_MOST])}.{restarted}"
        elif seen:
            yield f"No: {many(len(seen), 'tool call')} ran once{' each' if len(seen) > 1 else ''}.{restarted}"
        if unseen := [use for use in uses if not ran[use.token]]:
            carried = sum(bool(use.results) for use in unseen)
            only = "" if seen else restarted
            yield (
                f"{many(len(unseen), 'tool call')} may have run unseen: only the harness's own commands and tools "
                f"report their runs. Later requests carry a result of {carried:,} of them.{only}"
            )
            yield from self._pages()

    def _starts(self) -> str:
        starts = [event for event in self.history.of(AgentStarted) if event.pid]
        if not starts:
            return ""
        return f" The agent was started {len(starts)} times." if len(starts) > 1 else " The agent was started once."

    def _pages(self) -> Iterator[str]:
        """The pages that its own tools asked for, which is a sign of their runs."""
        asked = Counter(event.path for event in self.history.of(PageAsked))
        named_ = [
            f"{one_line(path, 60)} {times} times" if times > 1 else one_line(path, 60) for path, times in asked.items()
        ]
        if asked:
            more = f" and {len(named_) - IDS_SHOWN:,} more" if len(named_) > IDS_SHOWN else ""
            once = ", once each" if max(asked.values()) == 1 and len(asked) > 1 else ""
            yield f"Its tools asked our page server for {', '.join(named_[:IDS_SHOWN])}{more}{once}."

    # ---- hosts

    def hosts(self) -> Iterator[str]:
        refused = list(dict.fromkeys(event.host for event in self.history.of(HostRefused)))
        if refused:
            yield f"It asked for {named(refused)} and was refused."
        elif _has_hosts(self.run.folder):
            yield "None: it asked for no host outside those of its spec."
        else:
            yield from _connections(self.history)


def _has_hosts(folder: Path) -> bool:
    try:
        return re.search(r"^hosts:", (folder / "agent.yaml").read_text("utf-8", "replace"), re.MULTILINE) is not None
    except OSError:
        return False


def _connections(history: History) -> Iterator[str]:
    """What was seen of an agent that ran in the machine's own network."""
    watched = history.first(ConnectionsWatched)
    if watched is None:
        yield "Not watched: its spec has no `hosts`, so it ran in the machine's own network."
        return
    if watched.others:
        yield f"It was connected to {named(watched.others)}."
    else:
        yield "None seen: no process of the agent had a TCP connection to another machine."
    yield (
        f"Looked for in {many(watched.looks, 'look')}, one every {watched.every_s:g} s: a shorter connection can be "
        "missed. A spec with `hosts` would show each name that it asks for."
    )


def _told_its_stop(history: History) -> Turn | None:
    """The first turn that its user stopped and that ended with words of an error."""
    stopped = (turn for turn in history.turns if turn.stopped is not None and not turn.recovery)
    return next((turn for turn in stopped if turn.end is not None and turn.end.error.strip()), None)


def _with_late_error(history: History) -> Turn | None:
    """The first turn that ended with an error after its deadline."""
    return next((turn for turn in history.turns if outcome_of(turn, history).remark == LATE_ERROR), None)


def _since(turn: Turn) -> str:
    """How long a turn took, from its message and from its first request."""
    if turn.end is None or turn.stimulus is None:
        return "in a turn without an end"
    from_message = seconds(turn.end.at_s - turn.stimulus.at_s)
    requests = f", {seconds(turn.duration_s)} after its first request" if turn.calls else ""
    message = "it was given" if turn.recovery else f"the message of {turn}"
    return f"{from_message} after {message}{requests}"
