"""An agent that is a function `(message, *, session_dir, llm_url, key) -> str`, sync or async, in its own process."""

import asyncio
import json
import signal
import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from wedgehog.harness.agents.base import AgentError, DeliveredSignal, Outcome, Session, Stimulus
from wedgehog.harness.agents.callables.callable_python import python_of, started_in
from wedgehog.harness.agents.context import AgentContext, Surroundings
from wedgehog.harness.agents.output_source import OutputSource
from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.sandbox.forked import Forked
from wedgehog.harness.sandbox.owned import Owned, Tree

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


class CallableSession(Session):
    """One host process per run; it is started again only after a deadline, a kill, or its own end."""

    def __init__(self, spec: AgentSpec, context: AgentContext, surroundings: Surroundings, tree: Tree) -> None:
        """`tree` owns and ends the host process. Errors: AgentError if the spec's Python cannot run it."""
        super().__init__(spec, context, surroundings, tree)
        self._target = surroundings.fill(spec.callable or "")
        self._host: _Host | None = None
        self._over: asyncio.Event | None = None
        self._first: CallableSession | None = None
        """The session whose process this one uses too."""
        self.started = started_in(spec, self._target)

    async def open(self) -> None:
        """Start the host. The first message imports the function's module, so an import error belongs to that turn."""
        await self._alive()

    async def close(self) -> None:
        """Close the host's socket."""
        if self._first is not None:
            await self._first.close()
        elif self._host is not None:
            self._host.writer.close()
        self._host = self._owned = None

    async def _say(self, text: str, kind: Stimulus, *, first: bool) -> Outcome:
        """Call the function. If the host ends by a signal before it answers, the turn counts as killed."""
        host, over = await self._alive(), asyncio.Event()
        self._over, self._ended, self._delivered = over, "by itself", None
        asked = {
            "session_dir": str(self._context.session_dir),
            "llm_url": self._context.llm_url,
            "key": self._context.key,
        }
        try:
            reply = await host.replied({"message": text, **asked})
            code = None if reply else await host.owned.finished()
            if code is not None and self._ended == "by itself" and self._ended_by_signal(code):
                self._ended = "killed"
        except BaseException:
            host.owned.kill()
            await self.close()
            raise
        finally:
            over.set()
        return self._outcome(host.owned, reply, code)

    async def apart(
        self,
        name: str,
        context: AgentContext,
        surroundings: Surroundings,
        *,
        at_once: bool = True,
        struck: bool = False,
    ) -> "CallableSession":
        """Calls with another session_dir: in the same process, as in a service, or `at_once` in one of its own."""
        other = CallableSession(self._spec, context, surroundings, self._tree)
        other.name, other._first = name, None if at_once else self
        await other.open()
        return other

    def signalled(self, delivered: DeliveredSignal) -> None:
        """A process of two sessions ends for both."""
        super().signalled(delivered)
        if self._first is not None:
            self._first.signalled(delivered)

    def _in_turn(self) -> bool:
        return self._over is not None and not self._over.is_set()

    async def _stop(self, grace_s: float) -> None:
        """SIGINT, `grace_s` for the call to return, SIGKILL of the tree."""
        if self._over is None or self._owned is None:
            return
        known = self._owned.below()
        self._owned.send_signal(signal.SIGINT)
        try:
            await asyncio.wait_for(self._over.wait(), grace_s)
        except TimeoutError:
            self._owned.kill(known)
            await self._over.wait()

    async def _alive(self) -> _Host:
        """A running host; its earlier output is dropped."""
        if self._first is not None:
            self._host = await self._first._alive()
            self._owned, self.started = self._host.owned, self._first.started
            return self._host
        if self._host is not None and self._delivered is not None:
            left_s = max(END_WITHIN_S, self._delivered.until_s - self._context.clock.now())
            with suppress(TimeoutError):
                await asyncio.wait_for(self._host.owned.ended(), left_s)
        if self._host is None or self.leader is None:
            await self.close()
            self._host = await self._new_host()
        self._host.owned.forget_output()
        return self._host

    async def _new_host(self) -> _Host:
        ours, theirs = socket.socketpair()
        argv = [python_of(self._spec), str(HOST), str(theirs.fileno()), self._target, str(self._spec.here)]
        env, context = self._around.env, self._context

        async def forked(env: Mapping[str, str], *outputs: int) -> Forked | None:
            if context.warm is None or context.disk is not None or context.hosts is not None:
                return None
            return await context.warm.forked(
                self._spec, argv, self.started.entry, env, context.cwd, theirs.fileno(), *outputs
            )

        try:
            with theirs:
                owned = await self._tree.start(
                    argv, env=env, cwd=context.cwd, log=context.log, pass_fds=[theirs.fileno()], fork=forked
                )
        except OSError as bad:
            ours.close()
            raise AgentError(f"{self._spec.path}: cannot start {argv[0]!r}: {bad.strerror}") from None
        reader, writer = await asyncio.open_connection(sock=ours, limit=LONGEST_LINE_BYTES)
        self._owned, self.started = owned, replace(self.started, pid=owned.pid, began_s=round(context.clock.now(), 4))
        self.starts.append(self.started)
        return _Host(owned, reader, writer)

    def _outcome(self, owned: Owned, reply: dict[str, str], code: int | None) -> Outcome:
        out, err = owned.output()
        raised = reply.get("raised") if reply else f"the process ended with exit code {code}"
        error = raised or ""
        if "error" in self._spec.model_fields_set and not raised:
            source = OutputSource.parse(self._spec.error)
            error = err if source.kind == "stderr" else source.within(out)
        told = Outcome(reply.get("answer", ""), error, code, raised=raised, stdout=out, stderr=err, ended=self._ended)
        return replace(told, after_answer_s=0.0 if "answer" in reply else None)  # its user has what it returns
