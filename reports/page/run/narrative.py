"""Facts of a history as short sentences, in order of importance: what failed, what was sent, what came back."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from wedgehog.harness.record.events.run import RunStarted
from wedgehog.harness.record.events.turn import HangSeen
from wedgehog.harness.record.history import History, longest_run
from wedgehog.harness.record.ledger import LEAST_S, MINUTE_S, Ledger, played_ledger
from wedgehog.harness.record.turn_outcome import answers
from wedgehog.harness.record.views import Call, Turn
from wedgehog.reports.calls import ending, place, size_down, stop_name, took_s
from wedgehog.reports.cost import LOWER_BOUNDS
from wedgehog.reports.database_use import backends, database
from wedgehog.reports.page.run.long_waits import granted, worked_on
from wedgehog.reports.page.run.tool_words import errors_among, for_unended, ran, tokens, unended
from wedgehog.reports.tool_runs import tool_calls
from wedgehog.reports.words import count, many, money, one_line, seconds

AT_MOST = 4
"""The most sentences of one kind that are shown; the rest is counted."""

PREPAID_USD = 10.0

STREAK_WORTH_SAYING = 3


def narrated(history: History) -> list[str]:
    """Sentences about a run, the most important ones first."""
    said = _Narrative(history)
    folds = (
        *(said.lost_calls, said.retries, said.streaks, said.refusals, said.models, said.scripted),
        *(said.rate, said.cut_short, said.background, said.continuations, said.stops, said.hangs, said.grants),
        *(said.after_the_stop, said.stray, said.tools, said.database, said.links, said.answers, said.context),
        said.delays,
    )
    return [sentence for fold in folds for sentence in fold()]


@dataclass(frozen=True)
class _Narrative:
    history: History

    def database(self) -> Iterator[str]:
        used = database(self.history)
        if used is not None:
            yield f"Use of the database: {used}."

    def links(self) -> Iterator[str]:
        yield from (f"Use of {use}." for use in backends(self.history))

    def lost_calls(self) -> Iterator[str]:
        """Accepted calls whose reply did not arrive whole. Similar calls share one sentence."""
        lost = [call for call in self.history.calls if call.main and call.started and not call.whole]
        alike = [list(group) for _, group in groupby(lost, key=_likeness)]
        yield from _some([_lost(group) + self._once(group[0]) for group in alike], "kinds of lost call")

    def _once(self, lost: Call) -> str:
        """A remark if the agent did not send a lost request again; `retries` says it of the others."""
        if lost.still_coming:
            return ""
        at = lost.arrived
        step = (at.turn, at.step, at.side)
        alike = [
            it for it in self.history.calls if it.main and step == (it.arrived.turn, it.arrived.step, it.arrived.side)
        ]
        return " It was not sent again." if len(alike) == 1 else ""

    def retries(self) -> Iterator[str]:
        tried = [
            f"{str(step).capitalize()} had {len(step.calls):,} attempts, {len(step.paid_calls):,} of them paid."
            for turn in (*self.history.turns, self.history.stray)
            for step in turn.steps
            if len(step.calls) > 1
        ]
        yield from _some(tried, "steps with several attempts")

    def streaks(self) -> Iterator[str]:
        paid = [call for turn in self.history.turns for call in turn.paid_calls]
        for says, is_bad in (
            ("delivered no output token", lambda call: call.tokens_delivered == 0),
            ("completed no text block or tool call", lambda call: not call.progressed),
        ):
            longest = longest_run(paid, is_bad)
            if len(longest) >= STREAK_WORTH_SAYING:
                ids = f"{place(longest[0])} to {place(longest[-1])}"
                yield f"{len(longest):,} paid calls in a row {says} ({ids})."

    def refusals(self) -> Iterator[str]:
        refused = [call for call in self.history.calls if call.refused]
        kinds = Counter(_refusal(call) for call in refused)
        played = Counter(_refusal(call) for call in self.history.played_calls if call.refused)
        yield from _some(
            [
                f"{many(number, 'call')}{_of_recovery(number - played[kind], number)} refused with {kind}."
                for kind, number in kinds.most_common()
            ],
            "kinds of refusal",
        )

    def models(self) -> Iterator[str]:
        paid = Counter((call.arrived.model, call.arrived.wire) for call in self.history.played_calls if call.paid)
        if len(paid) > 1:
            parts = [f"{one_line(model, 40)} ({wire}) {number:,}" for (model, wire), number in paid.most_common()]
            yield f"Paid calls by model: {', '.join(parts)}."

    def scripted(self) -> Iterator[str]:
        """Tokens that the script sets: their cost is the scenario's number, not a measured one."""
        calls = [call for call in self.history.played_calls if call.started is not None and call.started.scripted]
        if not calls:
            return
        of = f"{len(calls):,} of {many(played_ledger(self.history).paid_calls, 'paid call')}"
        most = max(calls, key=lambda call: call.input_tokens)
        asked = f"{count(most.input_tokens)} input tokens for a request of {many(most.arrived.body_bytes, 'byte')}"
        yield f"The script sets the tokens of {of} ({asked}): the cost follows from the script, not from what was sent."

    def rate(self) -> Iterator[str]:
        """The cost per minute, and how long a prepaid balance lasts at this rate; nothing where the rate is low."""
        spent = played_ledger(self.history)
        usd_per_min = spent.peak_usd_per_min
        if usd_per_min is None or usd_per_min < PREPAID_USD / 10:
            return
        scale = self.history.run.time_scale
        if scale == 1:
            lasts = f"a prepaid {money(PREPAID_USD)} would last {PREPAID_USD / usd_per_min:.1f} min at this rate"
        else:
            lasts = f"this is real time, and the scenario's durations were divided by {scale:g}"
        yield f"{_in_time(spent)}: simulated cost {money(usd_per_min)} per minute; {lasts}."

    def cut_short(self) -> Iterator[str]:
        if self.history.cut_short:
            yield LOWER_BOUNDS

    def background(self) -> Iterator[str]:
        kinds = Counter(call.arrived.background for call in self.history.played_calls if not call.main)
        if kinds:
            parts = [f"{one_line(kind, 40)} {number:,}" for kind, number in kinds.most_common()]
            yield f"Background calls: {', '.join(parts)}."

    def continuations(self) -> Iterator[str]:
        """The content of the first request of each later step."""
        firsts = [
            step.calls[0].arrived
            for turn in self.history.turns
            for step in turn.steps
            if step.number > 1 and step.calls
        ]
        said = [
            f"The continuation in step {at.step} of turn {at.turn} carried {many(at.messages, 'message')} "
            f"(with any system prompt) and {many(len(at.results), 'tool result')} of "
            f"{many(sum(r.chars for r in at.results), 'character')}{errors_among(at.results)}{tokens(at.results)}."
            for at in firsts
        ]
        between = len(said) - AT_MOST
        yield from said[: AT_MOST - 1]
        if between > 0:
            yield f"… and {many(between, 'more continuation')}; the last one:"
        yield from said[max(AT_MOST - 1, len(said) - 1) :]

    def stops(self) -> Iterator[str]:
        cut = [call for call in self.history.calls if call.ended and call.ended.stop == "max_tokens"]
        yield from _some(
            [
                f"The reply to {place(call)} stopped at max_tokens after {many(call.output_tokens, 'output token')}."
                for call in cut
            ],
            "replies that stopped at max_tokens",
        )

    def hangs(self) -> Iterator[str]:
        names = {turn.number: str(turn) for turn in self.history.turns}
        for seen in self.history.of(HangSeen):
            yield f"At the deadline of {names.get(seen.turn, seen.turn)}, {one_line(seen.says, 300)}."

    def grants(self) -> Iterator[str]:
        yield from granted(self.history)
        yield from worked_on(self.history)

    def after_the_stop(self) -> Iterator[str]:
        """Requests after a deadline or a kill. `no_spend_after_abort` reports those after an abort or a hang-up."""
        for turn in self.history.turns:
            stop = turn.deadline or turn.killed
            if stop is None or turn.stopped is not None:
                continue
            after = [call for call in turn.calls if call.at_s > stop.at_s]
            paid = f", {sum(call.paid for call in after):,} of them paid" if after else ""
            made = many(len(after), "more request") if after else "no more request"
            yield f"After the {stop_name(turn)} at {seconds(stop.at_s)} {made} of {turn} came{paid}."

    def stray(self) -> Iterator[str]:
        if self.history.stray.calls:
            yield f"{many(len(self.history.stray.calls), 'request')} came while no turn was open."

    def tools(self) -> Iterator[str]:
        """Tool calls without a result, and tool calls that ran more than once."""
        calls = tool_calls(self.history)
        lost = [use for use in calls if not use.results]
        open_ = [f"{use.token} {one_line(use.offered.name, 40)}{ran(use.started, use.done)}" for use in lost]
        if open_:
            more = f" and {len(open_) - AT_MOST} more" if len(open_) > AT_MOST else ""
            yield f"No later request carried a result of tool call {', '.join(open_[:AT_MOST])}{more}."
        for use in calls:
            if len(use.started) > 1:
                yield f"Tool call {use.token} ran {len(use.started)} times."
        yield from _some([for_unended(use) for use in calls if unended(use)], "such results")

    def answers(self) -> Iterator[str]:
        """Messages that were answered several times, or in another turn."""
        for turn in self.history.turns:
            if turn.stimulus is None or not turn.stimulus.nonce:
                continue
            places = [other for other in self.history.turns if answers(turn, other)]
            if len(places) > 1:
                yield f"{_name(turn)} was answered {len(places)} times: in {', '.join(map(str, places))}."
            elif places and places[0].number != turn.number:
                yield f"{_name(turn)} was answered late, in {places[0]}."

    def context(self) -> Iterator[str]:
        last = self.history.turns[-1] if self.history.turns else None
        if last is None or not last.recovery or not last.main_calls:
            return
        before = {turn.number for turn in self.history.turns if turn.main_calls and turn.number < last.number}
        before -= {turn.number for turn in self.history.turns if turn.recovery or turn.session != last.session}
        gone = sorted(before - set(last.main_calls[-1].arrived.turns_seen))
        if gone:
            yield f"The recovery request does not contain turn {', '.join(map(str, gone))}: context was lost."

    def delays(self) -> Iterator[str]:
        if self.history.lag_s >= 1:
            yield f"The harness was late by up to {seconds(self.history.lag_s)}."
        waited = self.history.cpu_wait(0.0, float("inf"))
        if waited.agent_s >= 1:
            yield f"The agent waited {seconds(waited.agent_s)} for a processor in total."
        scale = self.history.run.time_scale if self.history.first(RunStarted) else 1.0
        if scale != 1:
            yield f"The scenario's durations were divided by {scale:g}; times are real unless marked as the scenario's."


def _some(sentences: Sequence[str], noun: str) -> Iterator[str]:
    yield from sentences[:AT_MOST]
    if len(sentences) > AT_MOST:
        yield f"… and {count(len(sentences) - AT_MOST)} more {noun}."


def _refusal(call: Call) -> str:
    """The status, and what the provider said."""
    refused = call.refused
    if refused is None:
        return ""
    pairing = " because tool calls and results did not pair" if refused.pairing else ""
    said = "" if refused.scripted else f": {one_line(refused.message, 120).rstrip('.')}"
    return f"{refused.status}{pairing}{said}"


def _of_recovery(number: int, total: int) -> str:
    some = f" ({number:,} of the recovery)" if number else ""
    return " of the recovery" if number == total else some


def _likeness(call: Call) -> tuple[object, ...]:
    at, down = call.arrived, call.ended.bytes_delivered if call.ended else None
    return (at.turn, at.step, at.path, at.body_bytes, len(at.results), down, ending(call), _faults(call))


def _lost(group: Sequence[Call]) -> str:
    call, at = group[0], group[0].arrived
    who = f"Call {place(call)}" if len(group) == 1 else f"{len(group):,} calls, {place(call)} to {place(group[-1])},"
    size = many(at.body_bytes, "byte")
    up = f"{size} with {many(len(at.results), 'tool result')} sent" if at.results else f"{size} sent"
    faults = f" (fault: {_faults(call)})" if _faults(call) else ""
    return f"{who} to {one_line(at.path, 60)}: {up}, {size_down(call)}; {ending(call)}{_spans(group)}{faults}."


def _faults(call: Call) -> str:
    return " and ".join(sorted({fired.name for fired in call.faults}))


def _spans(group: Sequence[Call]) -> str:
    spans = sorted(spent for spent in map(took_s, group) if spent is not None)
    if not spans:
        return ""
    shortest, longest = seconds(spans[0]), seconds(spans[-1])
    return f" after {longest}" if shortest == longest else f" after {shortest} to {longest}"


def _in_time(spent: Ledger) -> str:
    lasted_s = spent.calls_s or 0.0
    if lasted_s >= MINUTE_S:
        return "In the most expensive 60 s"
    least = f", counted as {LEAST_S:g} s" if lasted_s < LEAST_S else ""
    return f"{many(spent.paid_calls, 'paid call')} in {seconds(lasted_s)}{least}"


def _name(turn: Turn) -> str:
    return "The recovery message" if turn.recovery else f"The message of turn {turn.number}"
