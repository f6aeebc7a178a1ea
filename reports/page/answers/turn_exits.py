"""How a turn that was not answered left the conversation's history: what became of its tool calls and their results."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from wedgehog.harness.record.history import History
from wedgehog.harness.record.turn_outcome import outcome_of
from wedgehog.harness.record.views import Call, Turn
from wedgehog.reports.calls import place
from wedgehog.reports.page.answers.sentences import Sentence, linked
from wedgehog.reports.words import many, one_line

OTHERS_SHOWN = 3


@dataclass(frozen=True, slots=True)
class TurnExit:
    """The end of a turn, and what the first request after it carried of the turn's tool calls."""

    turn: str
    how: str
    request: str
    calls: int
    with_result: int
    dangling: int

    @property
    def left(self) -> str:
        """`a result of 1 of its 3 tool calls, and 2 without one`"""
        gone = self.calls - self.with_result - self.dangling
        its = f"its {many(self.calls, 'tool call')}"
        parts = [
            f"{self.dangling} of {its} without a result" if self.dangling else "",
            f"{self.with_result} of {its} with a result" if self.with_result else "",
            f"neither call nor result of {gone} of {its}" if gone else "",
        ]
        return ", ".join(filter(None, parts))

    @property
    def kind(self) -> tuple[bool, bool, bool]:
        """What two exits have in common if they leave the same state: some dangling, some with a result, some gone."""
        return bool(self.dangling), bool(self.with_result), self.calls > self.with_result + self.dangling


def turn_exit(history: History) -> TurnExit | None:
    """The first exit of a run that left tool calls behind; None without one, or where open calls were not recorded."""
    turns = history.turns
    for number, turn in enumerate(turns):
        after = next((it for it in turns[number + 1 :] if it.session == turn.session and it.main_calls), None)
        tokens = list(dict.fromkeys(use.token for use in turn.tool_uses))
        unanswered = turn.end is not None and outcome_of(turn, history).kind != "answered"
        if unanswered and not turn.recovery and tokens and after is not None:
            return _exit(turn, tokens, after.main_calls[0], history)
    return None


def _exit(turn: Turn, tokens: Sequence[str], call: Call, history: History) -> TurnExit | None:
    if call.arrived.open_calls is None:
        return None
    results, open_ = ({it.token for it in found} for found in (call.arrived.results, call.arrived.open_calls))
    with_result, dangling = (sum(token in found for token in tokens) for found in (results, open_))
    how = one_line(outcome_of(turn, history).how, 90)
    return TurnExit(str(turn), how, place(call), len(tokens), with_result, dangling)


def exits_compared(mine: TurnExit | None, others: Sequence[tuple[str, str, TurnExit]]) -> Iterator[Sentence]:
    """This run's exit beside those of other runs of the same agent: their scenario, their address, their exit."""
    if mine is None or not others:
        return
    yield f"Here: {_said(mine)}"
    shown = sorted(others, key=lambda it: it[2].kind == mine.kind)[:OTHERS_SHOWN]
    for scenario, address, it in shown:
        yield ["In ", linked(scenario, address), f" (the same agent): {_said(it)}"]
    unlike = sum(it.kind != mine.kind for _, _, it in others)
    alike = "So these exits leave the same history." if not unlike else "So not all exits leave the same history."
    yield alike if len(others) > 1 or not unlike else "So the two exits do not leave the same history."


def _said(it: TurnExit) -> str:
    return f"{it.turn} ended ({it.how}), and the next request, {it.request}, carried {it.left}."
