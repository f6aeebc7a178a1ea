"""The numbers of a run: computed once from its history, so that a report of many runs keeps no history."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.record.events.run import AgentStarted
from wedgehog.harness.record.history import History
from wedgehog.harness.record.judgement import Judgement
from wedgehog.harness.record.ledger import Ledger, Tally, ledger_of, played_ledger
from wedgehog.harness.record.turn_outcome import TurnOutcome, outcome_of
from wedgehog.harness.record.views import Turn
from wedgehog.reports.calls import took_s
from wedgehog.reports.database_use import database
from wedgehog.reports.tool_runs import tool_runs
from wedgehog.reports.words import one_line

_SHOWN = ("surfaced", "stopped at its limit")
"""Ends of a turn in which its user saw an error."""


@dataclass(frozen=True, slots=True)
class RunNumbers:
    """What the tables need of one history."""

    columns: Mapping[str, Any]
    """Columns of the table of runs; empty for a run that was skipped."""
    times: tuple[tuple[str, float], ...]
    """Each measured time: its measure, and seconds."""
    lasted_s: float
    turn_least_s: float | None = None
    """The longest turn, without the waits for a processor."""
    start_least_s: float | None = None
    """The longest start, without them."""
    other_turns_s: float | None = None
    """All turns but the longest, with the recovery message; None if no turn ended."""
    other_turns_least_s: float | None = None
    """The same without the waits for a processor."""
    recovery_calls: int | None = None
    """The paid calls of the recovery message; None if none was sent."""
    recovery_usd: float | None = None
    """What they cost; None too if a price is unknown."""
    unanswered: int | None = None
    """How many messages of the scenario that need an answer got none; None if answers have no nonce."""
    recorded: bool = True
    """Whether anything happened."""
    bound_s: float | None = None
    """The time after which a turn was stopped."""
    busy: float = 0.0
    """For which share of its turns the harness waited for a processor."""

    def unless_skipped(self, judgement: Judgement) -> "RunNumbers":
        """These numbers; of a skipped run only its length."""
        return RunNumbers({}, (), self.lasted_s, recorded=self.recorded) if judgement.skipped else self


def numbers_of(history: History) -> RunNumbers:
    """The numbers of one history."""
    lasted_s = history.events[-1].at_s if history.events else 0.0
    recovery = recovery_tally(history)
    return RunNumbers(
        _columns(history),
        tuple(times(history)),
        lasted_s,
        worst_turn_s(history, without_waits=True),
        longest_start_s(history, without_waits=True),
        _rounded(other_turns_s(history)),
        other_turns_s(history, without_waits=True),
        recovery.accepted if recovery else None,
        recovery.cost_usd if recovery else None,
        unanswered_messages(history),
        bool(history.events),
        history.run.turn_s,
        round(busy(history), 4),
    )


def _columns(history: History) -> dict[str, Any]:
    used = database(history)
    return {
        "time_scale": history.run.time_scale,
        **spent(history),
        **waited(history),
        "queries": used.queries if used else None,
        "queries_s": used.took_s if used else None,
        "queries_share": used.share if used else None,
        "harmed_answered": harmed_answered(history),
        "answered_turns": answered_turns(history),
        "wasted_usd": wasted_usd(history),
        "prices": " ".join(price_notes(played_ledger(history))),
    }


def times(history: History) -> Iterator[tuple[str, float]]:
    """Each measured time of a run: its measure, and seconds of real (or virtual) time.

    What belongs to the recovery message counts only as recovery.
    """
    for call in history.played_calls:
        if call.ended is not None and call.ended.first_byte_s is not None:
            yield "first byte", call.ended.first_byte_s
        taken_s = took_s(call)
        if taken_s is not None:
            yield "call", taken_s
    recoveries = {turn.number for turn in history.turns if turn.recovery}
    for run in tool_runs(history):
        if run.done is not None and run.use.turn not in recoveries:
            yield "tool", run.done.at_s - run.began.at_s
    played = (turn for turn in history.turns if not turn.recovery)
    yield from (("turn", turn.duration_s) for turn in played if turn.duration_s is not None)
    failed = first_error(history)
    if failed is not None and failed.duration_s is not None:
        yield "first error", failed.duration_s
    recovered_s = recovery_s(history)
    if recovered_s is not None:
        yield "recovery", recovered_s


def spent(history: History) -> dict[str, Any]:
    """What its calls cost."""
    total = played_ledger(history)
    return {
        "paid_calls": total.paid_calls,
        "refused_calls": total.total.refused,
        "tokens_billed": total.total.tokens_billed,
        "tokens_delivered": total.total.tokens_delivered,
        "cost_usd": total.cost_usd,
        "usage": _usage(total),
        "at_least": history.cut_short,
        "calls_s": _rounded(total.calls_s),
        "peak_calls_per_min": _rounded(total.peak_calls_per_min),
        "peak_usd_per_min": _rounded(total.peak_usd_per_min),
    }


def _usage(spent: Ledger) -> str:
    """Where the token numbers of the paid calls come from: the script, our count, or both."""
    if not spent.paid_calls or not spent.scripted:
        return "counted" if spent.paid_calls else ""
    return "scripted" if spent.scripted == spent.paid_calls else "both"


def price_notes(spent: Ledger) -> Iterator[str]:
    """Models without a price of their own, one sentence for all that are billed by the same price."""
    alike: dict[str | None, list[str]] = {}
    for model, priced in spent.priced_as.items():
        if priced != model:
            alike.setdefault(priced, []).append(one_line(model, 60))
    for priced, models in alike.items():
        names, is_ = ", ".join(models), "is" if len(models) == 1 else "are"
        if priced is None:
            yield f"The price of {names} is unknown, and so is the cost."
        else:
            yield f"{names} {is_} not in the price table: billed as {priced}."


def waited(history: History) -> dict[str, Any]:
    """How long its user waited, and for what."""
    played = [(turn, outcome_of(turn, history)) for turn in history.turns if not turn.recovery]
    error_in = first_error(history)
    return {
        "start_s": _rounded(longest_start_s(history)),
        "turn_s": _rounded(worst_turn_s(history)),
        "first_error_s": _rounded(error_in.duration_s if error_in else None),
        "recovery_s": _rounded(recovery_s(history)),
        "answered": _answered(played),
        "faults_fired": sum(1 for _ in history.of(FaultFired)),
    }


def first_error(history: History) -> Turn | None:
    """The first turn of the scenario whose user saw an error."""
    played = (turn for turn in history.turns if not turn.recovery)
    return next((turn for turn in played if outcome_of(turn, history).kind in _SHOWN), None)


def worst_turn_s(history: History, *, without_waits: bool = False) -> float | None:
    """The longest turn of the scenario, with or without the waits for a processor."""
    return max(_turn_times(history, without_waits=without_waits), default=None)


def other_turns_s(history: History, *, without_waits: bool = False) -> float | None:
    """All turns but the longest of the scenario, and the recovery message; None if no turn ended."""
    times = list(_turn_times(history, without_waits=without_waits))
    recovered = _turn_times(history, recovery=True, without_waits=without_waits)
    return sum(times) - max(times) + sum(recovered) if times else None


def _turn_times(history: History, *, recovery: bool = False, without_waits: bool) -> Iterator[float]:
    """How long each turn took that ended."""
    for turn in history.turns:
        if turn.end is not None and turn.recovery == recovery:
            waited_s = history.cpu_wait(turn.start_s, turn.end.at_s).total_s if without_waits else 0.0
            yield max(0.0, (turn.duration_s or 0.0) - waited_s)


def busy(history: History) -> float:
    """For which share of its turns the harness waited for a processor, whatever it had to do: 0 to 1."""
    spans = [(turn.start_s, turn.end.at_s) for turn in history.turns if turn.end is not None]
    took_s = sum(end - begin for begin, end in spans)
    waited_s = sum(min(end - begin, history.cpu_wait(begin, end).harness_s) for begin, end in spans)
    return waited_s / took_s if took_s else 0.0


def longest_start_s(history: History, *, without_waits: bool = False) -> float | None:
    """The longest start of a turn, with or without the waits for a processor; None if none was measured."""
    waited_s = (history.cpu_wait(*span).total_s if without_waits else 0.0 for span in _starts(history))
    return max(
        (max(0.0, end - begin - wait) for (begin, end), wait in zip(_starts(history), waited_s, strict=True)),
        default=None,
    )


def _starts(history: History) -> Iterator[tuple[float, float]]:
    """From each message to its first request; for the first, from the start of an agent that stays.

    Left out is a turn whose requests a fault kept away, and one that was given while the agent worked on another.
    """
    started = history.first(AgentStarted)
    for turn in history.turns:
        if turn.recovery or turn.stimulus is None or not turn.calls or turn.kept_from_start:
            continue
        if not any(other.number < turn.number for other in history.beside(turn)):
            ready_s = started.ready_s if started is not None and turn.number == 1 else 0.0
            yield turn.stimulus.at_s - ready_s, turn.calls[0].at_s


def _rounded(number: float | None) -> float | None:
    """Rounded to the four decimals that are measured."""
    return None if number is None else round(number, 4)


def recovery_s(history: History) -> float | None:
    """The duration of the recovery turn that was answered; None if none was."""
    tries = (turn for turn in history.turns if turn.recovery)
    return next((turn.duration_s for turn in tries if outcome_of(turn, history).kind == "answered"), None)


def _answered(played: list[tuple[Turn, TurnOutcome]]) -> bool | None:
    """Whether each message that needs an answer was answered; None if no message needs one."""
    owing = [came for turn, came in played if _needs_answer(turn, came)]
    return all(came.kind == "answered" for came in owing) if owing else None


def answered_turns(history: History) -> int:
    """How many turns of the scenario were answered."""
    return sum(outcome_of(turn, history).kind == "answered" for turn in history.turns if not turn.recovery)


def unanswered_messages(history: History) -> int | None:
    """How many messages of the scenario that need an answer got none; an error in its place is no answer.

    None if the agent's answers have no nonce by which they are known.
    """
    if not history.run.carries_nonces:
        return None
    played = ((turn, outcome_of(turn, history)) for turn in history.turns if not turn.recovery)
    return sum(came.kind != "answered" and _needs_answer(turn, came) for turn, came in played)


def wasted_usd(history: History) -> float | None:
    """Dollars for calls that completed no text block and no tool call; None if a price is unknown."""
    spent = played_ledger(history)
    wasted = [call for call in history.played_calls if call.paid and not call.progressed]
    return sum((spent.call(call.number) for call in wasted), Tally()).cost_usd


def recovery_tally(history: History) -> Tally | None:
    """The calls of the recovery message; None if none was sent."""
    turns = [turn.number for turn in history.turns if turn.recovery]
    spent = ledger_of(history).turns
    return sum((spent.get(number, Tally()) for number in turns), Tally()) if turns else None


def harmed_answered(history: History) -> bool | None:
    """Whether each turn in which a fault fired was answered; None without such a turn, or if answers have no nonce."""
    if not history.run.carries_nonces:
        return None
    faulty = {fired.turn for fired in history.of(FaultFired)}
    return _answered([(turn, outcome_of(turn, history)) for turn in history.turns if turn.number in faulty - {0}])


def _needs_answer(turn: Turn, came: TurnOutcome) -> bool:
    wake_up = turn.stimulus is not None and turn.stimulus.stimulus == "wake_up"
    return came.kind == "answered" or not (wake_up or came.kind in ("stopped by its user", "killed"))
