"""An agent that is a Python function and runs in a process of its own.

Its signature is `(message, *, session_dir, llm_url, key) -> str`, sync or async.
"""

import asyncio
import json
import signal
import socket
import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from wedgehog.harness.agents.base import AgentContext, AgentError, DeliveredSignal, Outcome, Stimulus, TurnEnding
from wedgehog.harness.agents.sources import OutputSource
from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.agents.surroundings import Surroundings
from wedgehog.harness.sandbox import Owned, Started, Tree, what_imports

HOST = Path(__file__).with_name("callable_host.py")
LONGEST_LINE_BYTES = 64_000_000
END_WITHIN_S = 0.5
"""A killed process gets at least this long to end."""


@dataclass(frozen=True, slots=True)
class _Host:
    owned: Owned
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def replied(self, asked: dict[str, str]) -> dict[str, str]:
        """The reply to one call; empty if the process ended first."""
        self.writer.write(json.dumps(asked).encode() + b"\n")
        line = asyncio.create_task(self.reader.readline())
        ended = asyncio.create_task(self.owned.ended())
        try:
            await asyncio.wait({line, ended}, return_when=asyncio.FIRST_COMPLETED)
            reply = line.result() if line.done() and not line.exception() else b""
        finally:
            line.cancel()
            ended.cancel()
        return dict(json.loads(reply)) if reply.endswith(b"\n") else {}


@dataclass(slots=True)
class _CallableTurn:
    host: _Host
    over: asyncio.Event
    ended: TurnEnding = "by itself"
    delivered: DeliveredSignal | None = None


class CallableSession:
    """One host process per run; it is started again only after a deadline, a kill, or its own end."""

    def __init__(self, spec: AgentSpec, place: AgentContext, surroundings: Surroundings, tree: Tree) -> None:
        """`tree` owns and ends the host process."""
        self._spec, self._place, self._around, self._tree = spec, place, surroundings, tree
        self._target = surroundings.fill(spec.callable or "")
        self._host: _Host | None = None
        self._turn: _CallableTurn | None = None
        self._started = what_imports(self._target, [str(spec.here)])

    @property
    def started(self) -> Started:
        """The function's file, and the host process."""
        return self._started

    async def open(self) -> None:
        """Start the host. The first message imports the function's module, so an import error belongs to that turn."""
        await self._alive()

    async def close(self) -> None:
        """Close the host's socket."""
        self._drop()

    async def say(self, text: str, *, kind: Stimulus = "user", first: bool) -> Outcome:
        """Call the function."""
        if kind == "wake_up":
            raise AgentError(f"{self._spec.path}: a callable has no wake_up")
        turn = self._turn = _CallableTurn(await self._alive(), asyncio.Event())
        owned = turn.host.owned
        asked = {"session_dir": str(self._place.session_dir), "llm_url": self._place.llm_url, "key": self._place.key}
        try:
            reply = await turn.host.replied({"message": text, **asked})
            code = None if reply else await owned.finished()
            if code is not None and turn.delivered and turn.ended == "by itself":
                turn.ended = "killed" if turn.delivered.ended(code, self._place.clock.now()) else turn.ended
        except BaseException:
            owned.kill()
            self._drop()
            raise
        finally:
            turn.over.set()
        return self._outcome(turn, reply, code)

    async def abort(self) -> None:
        """Send the spec's signal to the process group; SIGINT raises KeyboardInterrupt in the call."""
        if turn := self._running("aborted"):
            turn.host.owned.send_signal(signal.Signals[self._spec.abort])

    async def give_up(self) -> None:
        """End the call, as a user who stops waiting does."""
        await self._stop("gave up", 5.0)

    async def end_turn(self, grace_s: float = 5.0) -> None:
        """SIGINT, `grace_s` for the call to return, SIGKILL of the tree."""
        await self._stop("deadline", grace_s)

    @property
    def leader(self) -> Owned | None:
        """The host process; it also runs between messages."""
        return self._host.owned if self._host is not None and self._host.owned.exit_code is None else None

    def beside(self) -> None:
        """None: the host makes one call at a time."""

    def signalled(self, delivered: DeliveredSignal) -> None:
        """If the host ends by it before it answers, the turn counts as killed; the next message starts a new host."""
        if self._turn is not None:
            self._turn.delivered = delivered

    async def _stop(self, ended: TurnEnding, grace_s: float) -> None:
        turn = self._running(ended)
        if turn is None:
            return
        known = turn.host.owned.below()
        turn.host.owned.send_signal(signal.SIGINT)
        try:
            await asyncio.wait_for(turn.over.wait(), grace_s)
        except TimeoutError:
            turn.host.owned.kill(known)
            await turn.over.wait()

    def _running(self, ended: TurnEnding) -> _CallableTurn | None:
        if self._turn is None or self._turn.over.is_set():
            return None
        self._turn.ended = ended
        return self._turn

    async def _alive(self) -> _Host:
        """A running host; its earlier output is dropped."""
        if self._host is not None and self._turn is not None and self._turn.delivered is not None:
            left_s = max(END_WITHIN_S, self._turn.delivered.until_s - self._place.clock.now())
            with suppress(TimeoutError):
                await asyncio.wait_for(self._host.owned.ended(), left_s)
        if self._host is not None and self._host.owned.exit_code is not None:
            self._drop()
        if self._host is None:
            self._host = await self._start()
        self._host.owned.forget_output()
        return self._host

    async def _start(self) -> _Host:
        ours, theirs = socket.socketpair()
        argv = [sys.executable, "-P", str(HOST), str(theirs.fileno()), self._target, str(self._spec.here)]
        env, place = self._around.env, self._place
        with theirs:
            owned = await self._tree.start(argv, env=env, cwd=place.cwd, log=place.log, pass_fds=[theirs.fileno()])
        reader, writer = await asyncio.open_connection(sock=ours, limit=LONGEST_LINE_BYTES)
        self._started = replace(self._started, pid=owned.pid)
        return _Host(owned, reader, writer)

    def _drop(self) -> None:
        if self._host is not None:
            self._host.writer.close()
        self._host = None

    def _outcome(self, turn: _CallableTurn, reply: dict[str, str], code: int | None) -> Outcome:
        owned = turn.host.owned
        out, err = owned.output()
        raised = reply.get("raised") if reply else f"the process ended with exit code {code}"
        error = raised or ""
        if "error" in self._spec.model_fields_set and not raised:
            source = OutputSource.parse(self._spec.error)
            error = err if source.kind == "stderr" else source.within(out)
        return Outcome(reply.get("answer", ""), error, code, raised=raised, stdout=out, stderr=err, ended=turn.ended)
