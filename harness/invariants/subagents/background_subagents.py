"""The subagents of a run that worked beside the conversation, how each ended, and what the conversation heard of it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from wedgehog.fake_llm.script.roles import names_stop, names_subagent, names_wait
from wedgehog.fake_llm.script.side_conversations import SIDE
from wedgehog.harness.invariants.scope import over
from wedgehog.harness.record.events.base import Event
from wedgehog.harness.record.events.call import RequestArrived
from wedgehog.harness.record.events.turn import AGENT_ITSELF, AgentKilled, TurnEnded
from wedgehog.harness.record.history import History
from wedgehog.harness.record.views import Call, ToolUse

SETTLES_S = 1.0
"""A message that comes sooner after the end of a subagent may miss it."""

How = Literal["well", "failed", "cut off", "unknown"]


@dataclass(frozen=True)
class BackgroundSubagent:
    """A subagent whose parent went on before it had ended."""

    history: History
    name: str
    """`subagent 1`"""
    calls: tuple[Call, ...]
    uses: tuple[ToolUse, ...]
    """The tool calls of the reply that began it."""

    @property
    def last(self) -> Call:
        """Its last call."""
        return self.calls[-1]

    @cached_property
    def how(self) -> How:
        """How it ended: its last words came, its last call failed, or no further request came."""
        last = self.last
        if not last.final and self.died:
            return "cut off"
        if last.stopped_by or last.still_coming:
            return "unknown"
        if last.final:
            return "well"
        return "failed" if last.failed_at_s is not None and last.hung_up is None else "cut off"

    @property
    def died(self) -> bool:
        """Whether the agent's process was killed while it worked."""
        kills = (kill.id for kill in self.history.of(AgentKilled) if kill.whom in AGENT_ITSELF)
        return any(self.calls[0].arrived.id < kill <= self.end.id for kill in kills)

    @cached_property
    def end(self) -> Event:
        """Its last event."""
        return max(self.last.evidence, key=lambda event: event.id)

    @cached_property
    def main(self) -> tuple[RequestArrived, ...]:
        """The requests of the conversation."""
        return tuple(call.arrived for call in self.history.calls if call.main)

    @cached_property
    def chances(self) -> tuple[RequestArrived, ...]:
        """The requests of the conversation in a turn whose message came some time after the end."""
        after_s = self.end.at_s + SETTLES_S / self.history.run.time_scale
        given = (turn.stimulus for turn in self.history.turns)
        turns = {it.turn for it in given if it is not None and it.id > self.end.id and it.at_s >= after_s}
        return tuple(it for it in self.main if it.turn in turns and it.id > self.end.id)

    @property
    def told(self) -> bool:
        """Whether its words, or words of its end, came to the conversation or to the user."""
        return any(map(self.heard_in, self.main)) or self._shown()

    def heard_in(self, request: RequestArrived) -> bool:
        """Whether this request of the conversation, after the end, carries its words or words of its end."""
        if request.id < self.end.id:
            return False
        mine = {use.token for use in self.uses}
        fresh = (it.rpartition(":")[0] for it in request.notices if it not in self._known)
        return self.last.number in request.quotes or any(not token or token in mine for token in fresh)

    @cached_property
    def _known(self) -> frozenset[str]:
        """What the conversation had heard of subagents before the end."""
        return frozenset(it for request in self.main if request.id < self.end.id for it in request.notices)

    @property
    def is_known_by_a_word(self) -> bool:
        """Whether its last words end in one that stands nowhere else: without it nothing shows who repeats them."""
        said = self.last.ended.text_delivered.split() if self.last.ended is not None else []
        return bool(said) and any(letter.isdigit() for letter in said[-1])

    @property
    def words_came(self) -> bool:
        """Whether its words came to the conversation or to the user, also those of a summary of them."""
        own = {call.number for call in self.calls}
        heard = (it.arrived for it in self.history.calls if it.number not in own and it.arrived.id > self.end.id)
        return any(self.last.number in it.quotes for it in heard) or self._shown()

    def _shown(self) -> bool:
        """Whether the user read its last word."""
        said = self.last.ended.text_delivered.split() if self.last.ended is not None else []
        shown = (it for it in self.history.of(TurnEnded) if it.id > self.end.id)
        return bool(said) and any(said[-1] in text for it in shown for text in (it.answer, it.stdout, it.stderr))

    @property
    def outlived_s(self) -> float:
        """How long it went on after the process that had begun it; 0 if that stays, or had not ended."""
        turn = next((it for it in self.history.turns if it.number == self.uses[0].turn), None)
        ended = turn.end if turn is not None and turn.end is not None and turn.end.exit_code is not None else None
        return max(0.0, self.end.at_s - ended.at_s) if ended is not None else 0.0

    @property
    def remembered(self) -> bool:
        """Whether a request of a later message carries the result of the call that began it."""
        mine = {use.token for use in self.uses}
        return any(result.token in mine for request in self.chances for result in request.results)

    @property
    def may_be_asked_for(self) -> str:
        """The tool by which the model could ask for it, and did not; empty if there is none."""
        uses = [use for use in self.history.tool_uses if use.reply.id > self.uses[0].reply.id]
        until = next((use.reply.id for use in uses if names_subagent(use.offered.name)), self.history.end_id)
        if any(self.end.id < use.reply.id < until and names_wait(use.offered.name) for use in uses):
            return ""
        offered = (name for request in self.chances for name in request.tools)
        return next(filter(names_wait, offered), "")

    @property
    def unheard(self) -> str:
        """That nothing brought word of its end."""
        return f"{self}, and no later request of the conversation carries a word of that"

    def __str__(self) -> str:
        ended = {"well": "ended well", "failed": "failed", "cut off": "was cut off", "unknown": "did not end"}
        return f"{self.name}, which worked in the background, {ended[self.how]} in call {self.last.number}"


def background_subagents(history: History) -> Iterator[BackgroundSubagent]:
    """Each subagent whose delegating call had its result before the subagent had ended, unless a stop met it.

    Its user stopped the turn, or the model of its parent may have stopped it by a tool.
    """
    beside = in_the_background(history)
    return (it for it in beside if not (_was_stopped(history, it) or _is_stopped_by_a_tool(history, it)))


def in_the_background(history: History) -> Iterator[BackgroundSubagent]:
    """The same, those too that worked when their user stopped a turn."""
    sides: dict[str, list[Call]] = {}
    for call in history.calls:
        if call.arrived.side and call.arrived.background != SIDE:
            sides.setdefault(call.arrived.side, []).append(call)
    for name, calls in sides.items():
        found = BackgroundSubagent(history, name, tuple(calls), _begun_by(history, calls[0].arrived))
        if any(_went_on(use, found) for use in found.uses):
            yield found


def _begun_by(history: History, first: RequestArrived) -> tuple[ToolUse, ...]:
    """The delegating calls of the last reply with such calls before a subagent's first request."""
    uses = [use for use in history.tool_uses if names_subagent(use.offered.name) and use.reply.id < first.id]
    last = max((use.reply.id for use in uses), default=0)
    return tuple(use for use in uses if use.reply.id == last)


def _went_on(use: ToolUse, found: BackgroundSubagent) -> bool:
    """Whether the parent sent the result of a call before its subagent had ended, and had not given it up."""
    sent = next((it for it in use.results if not it.background), None)
    if sent is None or sent.id > found.end.id:
        return False
    carried = [it for it in sent.results if it.token == use.token]
    return not any(it.is_error or _says_stopped(it.signs) for it in carried)


def _says_stopped(signs: Sequence[str] | None) -> bool:
    return signs is not None and "stopped" in signs and "elsewhere" not in signs


def _is_stopped_by_a_tool(history: History, found: BackgroundSubagent) -> bool:
    """Whether the model of its parent called a tool that stops subagents, before this one had said its last words."""
    stops = [use.reply.id for use in history.tool_uses if names_stop(use.offered.name)]
    began, last = found.uses[0].reply.id, found.end.id
    return any(began < stop and (stop < last or not found.last.final) for stop in stops)


def _was_stopped(history: History, found: BackgroundSubagent) -> bool:
    """Whether its user or the harness stopped a turn while it worked. A kill of the agent is no stop."""
    began = found.uses[0].reply.id
    stops = (stop for turn in history.turns if (stop := over(turn)) is not None)
    return any(began < stop.id <= found.end.id for stop in stops if not isinstance(stop, AgentKilled))
