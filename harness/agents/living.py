"""An agent whose process stays, and takes message after message: what its kinds share.

         message 1      message 2      kill     message 3
start ──────●──────────────●────────────✗   resume ──●────────    one process, until it ends
"""

import asyncio
import signal
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from wedgehog.harness.agents.base import Outcome, Session, Stimulus
from wedgehog.harness.agents.context import AgentContext, Surroundings
from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.agents.told_usage import told_usage
from wedgehog.harness.record.events.turn import Permission
from wedgehog.harness.sandbox.arrivals import seconds_since
from wedgehog.harness.sandbox.owned import Owned, Tree
from wedgehog.harness.sandbox.started import what_runs

END_WITHIN_S = 0.5
"""A process that got a signal has at least this long to end, before the next message is given to it."""
LAST_WORDS_S = 0.05
"""How long to read the last output of a process that has ended."""
CLOSED_WITHIN_S = 1.0
"""How long a second process may take to end when its user closes it."""
KINDS: dict[Permission, tuple[str, ...]] = {
    "allow": ("allow_once", "allow_always"),
    "allow_always": ("allow_always",),
    "deny": ("reject_once", "reject_always"),
    "deny_once": ("reject_once", "reject_always"),
    "no_answer": (),
}
"""The kinds of option that each answer of a user chooses, the preferred one first."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Said:
    """What the agent said in one turn."""

    answer: str = ""
    error: str = ""
    raised: str | None = None
    """An error in the form of the agent's protocol."""


class LivingSession(Session):
    """One process for all messages, started with the first; one that has ended is started again by `resume`."""

    def __init__(self, spec: AgentSpec, context: AgentContext, surroundings: Surroundings, tree: Tree) -> None:
        super().__init__(spec, context, surroundings, tree)
        self._over: asyncio.Event | None = None
        self._ready = False
        """Whether the running process has said that it takes messages."""
        self._alone = True
        self._denied = False
        """Whether its user has answered a request for permission in this turn."""
        self.started = what_runs(self._argv(first=True), context.cwd, surroundings.env)

    # ---- what a kind of agent says

    @property
    def _appends(self) -> bool:
        """Whether all that it says is added to its answer."""
        return False

    @property
    def _speaks_protocol(self) -> bool:
        """Whether a front end reads what it prints, and a person only what that shows."""
        return False

    def _lines(self) -> tuple[Sequence[str], Sequence[str] | None]:
        """The command line of the first process, and that of a later one, if it differs."""
        raise NotImplementedError

    async def _launched(self, argv: list[str]) -> Owned:
        """Start the process, ready to talk."""
        raise NotImplementedError

    async def _prepare(self, *, first: bool) -> None:
        """Wait until a new process takes messages. Errors: NotReadyError."""

    async def _exchange(self, text: str) -> None:
        """Give the message; return when the agent has said that its turn is over."""
        raise NotImplementedError

    def _forget(self, owned: Owned) -> None:
        """Drop what was printed before this turn."""
        owned.forget_output()

    def _said(self) -> Said:
        """What it has said since the message was given."""
        raise NotImplementedError

    def _answered_s(self, owned: Owned, answer: str) -> float | None:
        """When the last of `answer` came, by the time of the event loop; None if that is not known."""
        raise NotImplementedError

    # ---- a turn

    async def _say(self, text: str, kind: Stimulus, *, first: bool) -> Outcome:
        """Give the message to the process, which is started first if there is none."""
        over = self._over = asyncio.Event()
        self._ended, self._denied, said, code = "by itself", False, Said(), None
        try:
            await self._dying()
            owned = await self._running(first=first)
            self._delivered = None
            said, code = await self._turn(owned, text, first=first)
        except BaseException:
            if self._owned is not None:
                self._owned.kill()
            raise
        finally:
            over.set()
        outcome = self._outcome(owned, said, code)
        if not self._alone:
            await owned.stop(signal.SIGTERM, CLOSED_WITHIN_S)
        return outcome

    async def _turn(self, owned: Owned, text: str, *, first: bool) -> tuple[Said, int | None]:
        """What it said, and its exit code if it ended."""
        try:
            if not self._ready:
                self._ready = await self._until(owned, self._prepare(first=first))
            if self._ready:  # (else it has ended, and what it printed says why)
                self._forget(owned)
            done = self._ready and await self._until(owned, self._exchange(text))
        except NotReadyError as bad:
            owned.kill()
            await owned.ended()
            return Said(raised=str(bad)), None
        code = None if done else await owned.finished()
        if code is not None and self._ended == "by itself" and self._ended_by_signal(code):
            self._ended = "killed"
        return self._said(), code

    async def _until(self, owned: Owned, work: Coroutine[Any, Any, None]) -> bool:
        """Whether it came to its end before the process did."""
        doing, dying = asyncio.create_task(work), asyncio.create_task(owned.ended())
        try:
            await asyncio.wait({doing, dying}, return_when=asyncio.FIRST_COMPLETED)
            if not doing.done():
                await owned.finished()
                await asyncio.wait({doing}, timeout=LAST_WORDS_S)
            if doing.done():
                doing.result()
            return doing.done()
        finally:
            doing.cancel()
            dying.cancel()
            await asyncio.wait({doing})

    def _outcome(self, owned: Owned, said: Said, code: int | None) -> Outcome:
        out, err = owned.output()
        raised = said.raised
        if code is not None:
            raised = raised or f"the process ended {_how(code)}"
        error = said.error or raised or ""
        after_s = seconds_since(self._answered_s(owned, said.answer)) if said.answer.strip() else None
        told = Outcome(said.answer, error, code, raised=raised, stdout=out, stderr=err, ended=self._ended)
        return replace(
            told,
            log_on_stderr=self._speaks_protocol,
            appends=self._appends,
            after_answer_s=after_s,
            usage=told_usage(self._spec.usage, (out, err)),
        )

    # ---- what it asks its user

    def _choose(self, offered: tuple[str, ...], about: str, *, stopping: bool = False) -> str:
        """The kind of option that its user chooses now, empty for none; the request is recorded."""
        first, self._denied = not self._denied, True
        wanted = KINDS["allow" if self.permission == "deny_once" and not first else self.permission]
        chosen = next((kind for kind in wanted if kind in offered), "")
        self.asked(offered, "" if stopping else chosen, about)
        return chosen

    # ---- its process

    async def _dying(self) -> None:
        """Give a process that got a signal between two messages its time to end."""
        if self._delivered is not None and self.leader is not None:
            left_s = max(END_WITHIN_S, self._delivered.until_s - self._context.clock.now())
            with suppress(TimeoutError):
                await asyncio.wait_for(self.leader.ended(), left_s)

    async def _running(self, *, first: bool) -> Owned:
        if self.leader is not None:
            return self.leader
        self._ready = False
        return await self._launched(self._argv(first=first))

    def _argv(self, *, first: bool) -> list[str]:
        start, resume = self._lines()
        return [self._around.fill(part) for part in (start if first else resume or start)]

    def beside(self) -> "Session":
        """A second process for the same session, as in a second window; it is closed after its turn."""
        second = type(self)(self._spec, self._context, self._around, self._tree)
        second.name, second._alone = self.name, False
        return second

    # ---- its end

    def _in_turn(self) -> bool:
        return self._over is not None and not self._over.is_set()

    async def _abort(self) -> None:
        """Stop the turn by the spec's signal, as a terminal does."""
        if self.leader is not None:
            self.leader.send_signal(signal.Signals[self._spec.abort])

    async def _stop(self, grace_s: float) -> None:
        """Stop the turn as its user would; after `grace_s`, SIGKILL of the tree."""
        known = self._owned.below() if self._owned is not None else []
        await self._abort()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._turn_over(), grace_s)
            return
        if self._owned is not None:
            self._owned.kill(known)
        await self._turn_over()

    async def _turn_over(self) -> None:
        if self._over is not None:
            await self._over.wait()


class NotReadyError(Exception):
    """A process does not take messages; the message says why."""


def _how(code: int) -> str:
    return f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
