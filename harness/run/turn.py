"""One turn: gives a message to the agent and waits until it is answered, stopped or over its deadline."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace

from wedgehog.harness.agents.base import AgentError, Outcome, Session
from wedgehog.harness.inject.process_faults import ToRunner
from wedgehog.harness.record.events.service import BeaconSeen
from wedgehog.harness.record.events.turn import (
    AbortSent,
    GaveUp,
    PermissionAsked,
    StimulusGiven,
    TurnEnded,
)
from wedgehog.harness.record.loss_words import CUT_BY_US
from wedgehog.harness.run.count_bounds import requests_of
from wedgehog.harness.run.deadline import LONGEST_STRETCH_S, Deadline
from wedgehog.harness.run.messages import UserMessage
from wedgehog.harness.run.redelivery import delivered_again
from wedgehog.harness.run.run_parts import RunParts
from wedgehog.harness.services.beacon import tokens_in

TICK_S, VIRTUAL_TICK_S = 0.05, 1.0
AFTER_STOP_S = 2.0
"""A request that starts later than this after an abort or give-up counts as spending (the stock bound)."""
LATER_READING_S = 0.25
"""Waits for a processor that are read only after the request that they delayed."""
TEXT_KEPT = 20_000
LINE_KEPT = 2_000
HANG_UP_ARRIVES_S = 0.002
END_WITHIN_S = 15.0
GiveMessage = Callable[[int], None]


async def _no_diagnosis(turn: int) -> None:
    """Do not look at the agent."""


class NetworkBrokeError(Exception):
    """The network failed during a turn: the run stops here."""


@dataclass(frozen=True)
class AfterStop:
    """How long an agent is watched after a stop: `quiet_s` beyond the bound if no call is open, `longest_s` at most.

    Waits for processors come on top of both.
    """

    quiet_s: float = 1.0
    longest_s: float = 10.0


IN_VIRTUAL_TIME = AfterStop(quiet_s=30.0, longest_s=60.0)
"""In virtual time, where waiting costs nothing and no time scale makes the agent's next call come earlier."""


@dataclass
class TurnPlayer:
    """Plays the turns of one run."""

    run: RunParts
    deadline: Deadline
    session: Session
    stays: bool
    """Whether the agent runs on between messages (a service), so that it may go on spending after a stop."""
    look: Callable[[], None] = lambda: None
    """Called before the end of a turn is recorded: the beacons of its tools come first."""
    hung: Callable[[int], Awaitable[None]] = _no_diagnosis
    """Called with a turn that is over its deadline, before it is ended."""
    sessions: list[Session] = field(default_factory=list)
    """The open sessions, the first one of a name is its own."""
    beside: "TurnPlayer | None" = None
    """The player of the turn during which this one is given."""
    goes_on: bool = False
    """Whether its message was given, and its turn is not over."""
    frozen_before_s: float = 0.0
    """How long processes had been stopped when the turn began."""
    watch: AfterStop = AfterStop()
    hang_up_s: float = 0.0
    """For a hang-up with which the agent ends its turn to reach the provider, before the turn's faults are healed."""

    async def play(self, message: UserMessage, during: Mapping[int, UserMessage] | None = None) -> None:
        """Give one message, wait until its turn is over, heal. Errors: NetworkBrokeError, AgentError."""
        self.run.positions.begin(message.number, message.marker, message.text, message.session)
        await self.run.injector.before_turn(message.number)
        self.run.history.add(
            StimulusGiven(
                turn=message.number,
                stimulus=message.kind,
                marker=message.marker,
                nonce=message.nonce,
                text=message.text,
                session=message.session,
            )
        )
        async with self._messages_during(during or {}) as give:
            async with delivered_again(self.session, self.run.history, self.run.clock, message, self._asks):
                outcome = await self._outcome_of(message, give)
                self.look()
                if self.run.cpu is not None:
                    self.run.history.add(self.run.cpu.seen(message.number))
                self.run.history.add(_ended(message.number, outcome))
            if outcome.ended in ("aborted", "gave up") and not message.next_at_once:
                await self._watch_after_stop(message.number)
            self.run.positions.end(message.number)
            if self.hang_up_s:
                await self.run.clock.sleep(self.hang_up_s)
            await self.run.injector.after_turn(message.number)

    @contextlib.asynccontextmanager
    async def _messages_during(self, messages: Mapping[int, UserMessage]) -> AsyncIterator[GiveMessage]:
        """What gives the message of a turn during this one; on the way out they end, or are cancelled on an error."""
        given: list[asyncio.Task[None]] = []

        def give(number: int) -> None:
            if number in messages:
                given.append(asyncio.create_task(self._play_beside(messages[number])))

        try:
            yield give
        except BaseException:
            for task in given:
                task.cancel()
            await asyncio.gather(*given, return_exceptions=True)
            raise
        for wrong in await asyncio.gather(*given, return_exceptions=True):
            if isinstance(wrong, BaseException):
                raise wrong

    def of(self, session: str) -> "TurnPlayer":
        """The player of turns of this session."""
        return replace(self, session=next(it for it in self.sessions if it.name == session))

    async def _play_beside(self, message: UserMessage) -> None:
        if message.session != self.session.name:
            await replace(self.of(message.session), beside=self, goes_on=False).play(message)
            return
        session = self.session.beside()
        if session is None:
            return
        session.starts = self.session.starts
        self.sessions.append(session)
        try:
            await replace(self, session=session, beside=self, goes_on=False).play(message)
        finally:
            self.sessions.remove(session)

    def _answer_questions(self, message: UserMessage) -> None:
        """Set what the user of this turn answers to a request for permission, and record each request."""

        def asked(offered: tuple[str, ...], chosen: str, about: str) -> None:
            if not self.run.history.sealed:
                self.look()  # a command that has begun did so before its user was asked
            event = PermissionAsked(turn=message.number, offered=offered, chosen=chosen, tokens=tokens_in(about))
            self.run.history.add_unless_sealed(event)

        self.session.answers(message.permission, asked)

    async def _outcome_of(self, message: UserMessage, give: GiveMessage) -> Outcome:
        kind = "user" if message.kind == "recovery" else message.kind
        self.frozen_before_s = self.run.injector.frozen_s
        self._answer_questions(message)
        self.session.choose(message.chosen_model)
        if message.loads_again:
            await self.session.load_again()
        saying = asyncio.create_task(self.session.say(message.words, kind=kind, first=message.opens))
        given_s = self.run.clock.now()
        self.goes_on = True
        try:
            while not saying.done():
                if self._queues_behind_another():
                    # The agent may work on the turn before this one first: its time has not begun.
                    given_s = self.run.clock.now()
                await self._one_tick(saying, message.number, given_s, give)
            return await saying
        finally:
            self.goes_on = False
            if not saying.done():
                saying.cancel()
                with contextlib.suppress(asyncio.CancelledError, AgentError):
                    await saying

    def _queues_behind_another(self) -> bool:
        """Whether the turn during which this one is given is of the same session, and still goes on."""
        return self.beside is not None and self.beside.goes_on and self.beside.session.name == self.session.name

    async def _one_tick(self, saying: "asyncio.Task[Outcome]", turn: int, given_s: float, give: GiveMessage) -> None:
        if self.beside is not None:  # the player of the first turn obeys all demands
            await asyncio.wait({saying}, timeout=self.deadline.tick_s)
        else:
            demand = asyncio.create_task(self.run.injector.demands.get())
            message = asyncio.create_task(self.run.injector.messages.get())
            try:
                await asyncio.wait(
                    {saying, demand, message}, timeout=self.deadline.tick_s, return_when=asyncio.FIRST_COMPLETED
                )
                if message.done():
                    give(message.result())
                if demand.done():
                    await self._obey(*demand.result(), turn=turn)
            finally:
                demand.cancel()
                message.cancel()
        if saying.done():
            return
        if self.run.injector.broken.is_set():
            await self._end(saying, grace_s=0.5)
            raise NetworkBrokeError
        if self.deadline.has_too_many(turn):
            await self._end(saying)
        elif self.deadline.is_over(turn, given_s, frozen_s=self.run.injector.frozen_s - self.frozen_before_s):
            await self.hung(turn)
            await self._end(saying)

    async def _obey(self, demand: ToRunner, after_s: float | None, *, turn: int) -> None:
        if demand == "look":
            return
        if demand == "abort":
            self.run.history.add(AbortSent(turn=turn, hangs_up=self.session.stops_by_hanging_up))
            await self.session.abort()
        else:
            self.run.history.add(GaveUp(turn=turn, after_s=after_s))
            await self.session.give_up()

    async def _end(self, saying: "asyncio.Task[Outcome]", grace_s: float = 5.0) -> None:
        await self.session.end_turn(grace_s)
        await asyncio.wait({saying}, timeout=END_WITHIN_S)

    async def _watch_after_stop(self, turn: int) -> None:
        """Wait for requests of a stopped agent that goes on spending."""
        if not self.stays:
            return
        stopped_s = self.run.clock.now()
        while not self.run.injector.broken.is_set():
            waited = self.run.clock.now() - stopped_s
            cpu_s = self.run.waited_s(stopped_s, with_harness=True)
            late = AFTER_STOP_S + 1.0 + self.run.lag.worst_s + cpu_s
            longest_s = self.watch.longest_s + min(cpu_s, LONGEST_STRETCH_S)
            spent = any(
                event.at_s > stopped_s + late + LATER_READING_S for event in requests_of(self.run.history, turn)
            )
            if spent or waited > longest_s or (waited > late + self.watch.quiet_s and not self._works_on(turn)):
                return
            await self.run.clock.sleep(self.deadline.tick_s)

    def _asks(self) -> bool:
        return bool(self.run.injector.open_calls)

    def _works_on(self, turn: int) -> bool:
        """Whether a call is open, or a tool of this turn still runs."""
        mine = [event for event in self.run.history.of(BeaconSeen) if event.token.startswith(f"{turn}.")]
        done = {event.token for event in mine if event.phase == "done"}
        return self._asks() or any(event.token not in done for event in mine)


def _ended(turn: int, outcome: Outcome) -> TurnEnded:
    return TurnEnded(
        turn=turn,
        ended=outcome.ended,
        answer=kept_text(outcome.answer),
        error=kept_text(outcome.error),
        exit_code=outcome.exit_code,
        status=outcome.status,
        streamed=outcome.streamed,
        raised=outcome.raised,
        stdout=kept_text(outcome.stdout),
        stderr=kept_text(outcome.stderr),
        shared=outcome.shared,
        log_on_stderr=outcome.log_on_stderr,
        appends=outcome.appends,
        opened=outcome.opened,
        stood_before=outcome.stood_before,
        was_away=outcome.was_away,
        loaded_again=outcome.loaded_again,
        picture=outcome.picture,
        after_answer_s=outcome.after_answer_s,
        usage=outcome.usage,
    )


def kept_text(text: str) -> str:
    """The beginning and the end of a long text. Long lines are shortened first, so that one line hides no other."""
    if len(text) <= TEXT_KEPT:
        return text
    return _shortened("\n".join(_shortened(line, LINE_KEPT) for line in text.split("\n")), TEXT_KEPT)


def _shortened(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    return f"{text[: most // 4]}[… {len(text) - most:,} {CUT_BY_US}{text[most // 4 - most :]}"
