"""What a reader asks first of any run, answered in one place: a list of short answers beside their questions."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Final

from wedgehog.harness.record.error_words import plain, uncoloured
from wedgehog.harness.record.events.run import AgentStarted, HostRefused
from wedgehog.harness.record.events.service import ToolAsked
from wedgehog.harness.record.history import History
from wedgehog.harness.record.ledger import ledger_of
from wedgehog.harness.record.store import StoredRun
from wedgehog.harness.record.turn_outcome import answers, outcome_of
from wedgehog.harness.record.views import Call, Turn
from wedgehog.reports.calls import place
from wedgehog.reports.database_use import database
from wedgehog.reports.history_changes import compared, left_open, named, removals
from wedgehog.reports.history_numbers import first_error
from wedgehog.reports.markup import Markup, tag
from wedgehog.reports.session_state import session_state
from wedgehog.reports.tool_runs import tool_calls
from wedgehog.reports.words import brief, count, many, money, one_line, seconds

ALIKE = 0.7
"""Two waits are alike if one is at least this share of the other: on a busy machine the proof of a fault comes late."""
IDS_SHOWN = 8
AT_MOST = 5
"""So many sentences of one answer are shown; the rest is counted."""

LIMIT_NAMED: Final = re.compile(
    r"\b(?:breaker|circuit|g[ai]v(?:e|ing) up|backstop|too many (?:attempts|retries|rounds|calls)"
    r"|(?:attempts?|retry|retries|rounds?|iterations?|budget|tool) (?:limit|exhausted|exceeded|used up)"
    r"|max(?:imum)?[ _](?:attempts|retries|rounds|iterations|turns))\b",
    re.IGNORECASE,
)
"""Words by which an agent says that it stops because of a limit of its own."""


def reader_answers(run: StoredRun) -> Markup | None:
    """The list; None for a run without a turn."""
    if not run.history.turns:
        return None
    pairs = [(name, list(said)) for name, said in _Answers(run).all()]
    items = [tag("div", tag("dt", name), tag("dd", _sentences(said))) for name, said in pairs if said]
    return tag("div", tag("h4", "What a reader asks"), tag("dl", items, class_="stack answers"))


def _sentences(said: Sequence[str]) -> list[Markup]:
    more = [f"… and {len(said) - AT_MOST:,} more."] if len(said) > AT_MOST else []
    return [tag("div", it) for it in [*said[:AT_MOST], *more]]


@dataclass(frozen=True)
class _Answers:
    run: StoredRun

    @cached_property
    def history(self) -> History:
        return self.run.history

    @cached_property
    def played(self) -> list[Turn]:
        return [turn for turn in self.history.turns if not turn.recovery]

    def all(self) -> Iterator[tuple[str, Iterator[str]]]:
        yield "Was each message answered once?", self.answered()
        yield "Time to the first error, and to recovery", self.times()
        yield "Inactivity, or the whole call?", self.silences()
        yield "What did the history keep?", self.kept()
        yield "Tool calls left without a result", self.left_open()
        yield "What does the session file hold?", self.session()
        yield "Ids of tool calls on the wire", self.wire_ids()
        yield "Did a tool call run again?", self.repeated()
        yield "Paid calls by provider and model", self.models()
        yield "Did a limit of its own stop it?", self.breaker()
        yield "The agent's own books", self.books()
        yield "Database", self.queries()
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
        yield f"First error: {_since(failed)}." if failed else "First error: the user saw none of the agent's own."
        tries = [turn for turn in self.history.turns if turn.recovery]
        answered = next((it for it in tries if outcome_of(it, self.history).kind == "answered"), None)
        if answered is not None:
            yield f"Recovery: the recovery message was answered {_since(answered)}."
        elif tries:
            yield f"Recovery: the recovery message had no answer; its turn ended {_since(tries[-1])}."

    # ---- calls

    def silences(self) -> Iterator[str]:
        """Of each call on which the agent hung up: how long it lasted, and how long nothing had come."""
        mine = [it for it in self.history.calls if it.hung_up is not None and it.main and not it.stopped_by]
        if not mine:
            return
        waits = [_waits_s(call) for call in mine]
        tells = [place(call) for call, (whole_s, quiet_s) in zip(mine, waits, strict=True) if quiet_s < ALIKE * whole_s]
        calls = f"call {place(mine[0])}" if len(mine) == 1 else f"{len(mine):,} calls"
        yield (
            f"The agent hung up on {calls} {_range(whole for whole, _ in waits)} after the request, and "
            f"{_range(quiet for _, quiet in waits)} after the last byte that arrived."
        )
        if tells:
            yield f"The two times differ in {named(tells)}: compare them with its timers."
        else:
            yield "Both times are alike, so either kind of timer fits; a reply that trickles tells them apart."

    def kept(self) -> Iterator[str]:
        if not (pairs := compared(self.history)):
            return
        if not (removed := removals(self.history)):
            yield f"Nothing was removed: each of {many(pairs, 'later request')} carried what the one before it carried."
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
            models = dict.fromkeys(call.arrived.model for call in mine)
            parts = [
                f"{one_line(it, 40)} {sum(call.arrived.model == it for call in mine):,}" for it in [*models][:AT_MOST]
            ]
            more = f" and {len(models) - AT_MOST} more models" if len(models) > AT_MOST else ""
            spent = ledger_of(self.history, mine)
            yield (
                f"{wire}: {many(len(mine), 'paid call')} ({', '.join(parts)}{more}), "
                f"{count(spent.total.tokens_billed)} tokens billed, {money(spent.cost_usd)}."
            )

    def breaker(self) -> Iterator[str]:
        for turn in self.played:
            said = "" if turn.end is None else uncoloured(f"{turn.end.error}\n{turn.end.stderr}\n{turn.end.answer}")
            if turn.end is None or (found := LIMIT_NAMED.search(said)) is None:
                continue
            after = [call for call in self.history.calls if call.arrived.id > turn.end.id]
            recovery = sum(call not in self.history.played_calls for call in after)
            code = "" if turn.end.exit_code is None else f" (exit code {turn.end.exit_code})"
            yield f"Its words at the end of {turn}{code} name a limit: “{one_line(_line_around(found), 160)}”."
            yield f"After them came {many(len(after) - recovery, 'call')}, and {recovery} of the recovery message."
            return
        yield "Its words name no breaker and no limit."

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
            yield f"No request carried tool call {named(unseen)} again, so its id is only in the session file."

    def repeated(self) -> Iterator[str]:
        uses = tool_calls(self.history)
        asked = [event.token for event in self.history.of(ToolAsked) if event.token]
        ran = {use.token: max(len(use.started), asked.count(use.token)) for use in uses}
        seen = [token for token, times in ran.items() if times]
        again = [f"{token} ran {times} times" for token, times in ran.items() if times > 1]
        starts = sum(1 for _ in self.history.of(AgentStarted))
        restarted = f" The agent was started {starts} times." if starts > 1 else ""
        if not uses:
            yield f"The model called no tool.{restarted}"
            return
        if not seen:
            yield f"Not known: of {many(len(uses), 'tool call')} none reported that it ran.{restarted}"
        elif again:
            yield f"Yes: {'; '.join(again[:AT_MOST])}.{restarted}"
        else:
            silent = f"; of {many(len(uses) - len(seen), 'other')} nothing is known" if len(seen) < len(uses) else ""
            yield f"No: {many(len(seen), 'tool call')} ran once{' each' if len(seen) > 1 else ''}{silent}.{restarted}"

    def queries(self) -> Iterator[str]:
        used = database(self.history)
        yield f"{used}." if used else "No query reached a database of the harness: its share of the time is not known."

    # ---- files

    def session(self) -> Iterator[str]:
        for path in [*sorted(self.run.folder.glob("session-at-kill-*/**/*")), *self.run.session_files]:
            state = session_state(path) if path.is_file() else None
            if state is None or not (state.calls or state.torn):
                continue
            when = "at the kill" if "session-at-kill" in str(path.relative_to(self.run.folder)) else "at the end"
            torn = "; its last record is torn" if state.torn else ""
            held = f"{many(len(state.dangling), 'tool call')} without a result: {named(state.dangling)}"
            held = held if state.dangling else f"a result for each of {many(len(state.calls), 'tool call')}"
            yield f"{when[0].upper()}{when[1:]}, {path.name}: {many(state.records, 'record')}, {held}{torn}."

    def books(self) -> Iterator[str]:
        """The sums of the numbers in its session files, beside ours."""
        ours = ledger_of(self.history)
        known = [(path, state) for path in self.run.session_files if (state := session_state(path)) is not None]
        if not any(state.sums for _, state in known):
            yield "None known: no session file holds amounts in each of its records."
        for path, state in known:
            sums = [f"{one_line(name, 30)} {brief(total)}" for name, total in state.sums.items()]
            if sums:
                yield f"{path.name}: {many(state.records, 'record')}, in sum {', '.join(sums[:AT_MOST])}."
        yield (
            f"By our count: {many(ours.paid_calls, 'paid call')}, {count(ours.total.input_tokens)} input and "
            f"{count(ours.total.output_tokens)} output tokens, {money(ours.cost_usd)}, recovery message included."
        )

    # ---- hosts

    def hosts(self) -> Iterator[str]:
        refused = list(dict.fromkeys(event.host for event in self.history.of(HostRefused)))
        if refused:
            yield f"It asked for {named(refused)} and was refused."
        elif _has_hosts(self.run.folder):
            yield "None: it asked for no host outside those of its spec."
        else:
            yield "Not watched: its spec has no `hosts`, so it ran in the machine's own network."


def _has_hosts(folder: Path) -> bool:
    try:
        return re.search(r"^hosts:", (folder / "agent.yaml").read_text("utf-8", "replace"), re.MULTILINE) is not None
    except OSError:
        return False


def _line_around(found: re.Match[str]) -> str:
    """The line of some words, of which at most 120 characters stand before them."""
    start = max(found.string.rfind("\n", 0, found.start()) + 1, found.start() - 120)
    return found.string[start : found.end() + 160].partition("\n")[0]


def _waits_s(call: Call) -> tuple[float, float]:
    """From the request, and from the last byte that arrived, to the agent's hang-up."""
    over_s = call.hung_up.at_s if call.hung_up is not None else call.at_s
    return over_s - call.at_s, over_s - _last_byte_s(call)


def _range(waits: Iterable[float]) -> str:
    found = list(waits)
    shortest, longest = seconds(min(found)), seconds(max(found))
    return shortest if shortest == longest else f"{shortest} to {longest}"


def _last_byte_s(call: Call) -> float:
    """When the last byte of the reply's body that arrived was sent; the request's time if none arrived."""
    if call.ended is None or not call.ended.bytes_delivered:
        return call.at_s
    first_s = call.at_s + (call.ended.first_byte_s or 0.0)
    return max([first_s, *(fired.at_s for fired in call.faults if fired.bytes is not None)])


def _since(turn: Turn) -> str:
    """How long a turn took, from its message and from its first request."""
    if turn.end is None or turn.stimulus is None:
        return "in a turn without an end"
    from_message = seconds(turn.end.at_s - turn.stimulus.at_s)
    requests = f", {seconds(turn.duration_s)} after its first request" if turn.calls else ""
    message = "it was given" if turn.recovery else f"the message of {turn}"
    return f"{from_message} after {message}{requests}"
