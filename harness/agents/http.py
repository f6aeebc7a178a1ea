"""An agent that is a service, started once per run or already running; one HTTP request is one turn."""

import asyncio
import math
import signal
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

import aiohttp

from wedgehog.harness.agents.base import AgentError, DeliveredSignal, Outcome, Session, Stimulus
from wedgehog.harness.agents.context import AgentContext, Surroundings
from wedgehog.harness.agents.http_request import NO_TIMEOUT, HttpReply, ask, described, why_not_ready
from wedgehog.harness.agents.output_source import OutputSource
from wedgehog.harness.agents.service_spec import Http, HttpCall
from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.agents.told_usage import told_usage
from wedgehog.harness.network.ports import free_port, is_listening
from wedgehog.harness.sandbox.arrivals import seconds_since
from wedgehog.harness.sandbox.owned import Owned, Tree
from wedgehog.harness.sandbox.started import Started

POLL_S = 0.05
SHUTS_DOWN_S = 30.0
"""A service that was told to end and no longer accepts connections has this time to end, as in Kubernetes."""
INHERITED_S = 1.0
"""A process that inherited a killed service's connection gets at least this long to answer on it."""
ABORT_TIMEOUT_S = 10.0
TOO_LATE_S = 1.0
"""A turn that ends within this time after a refused abort was ending already."""
LAST_LINES = 20


@dataclass(slots=True)
class HttpTurn:
    """A message that was sent, and its reply."""

    asking: asyncio.Task[HttpReply]
    signalled: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a signal to end the service was delivered."""
    refused: asyncio.Future[str] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    """Why the abort request failed."""


class HttpSession(Session):
    """Sends each message as one request; a turn's connection can be closed while the service runs on."""

    def __init__(
        self, spec: AgentSpec, context: AgentContext, surroundings: Surroundings, tree: Tree, http: Http | None = None
    ) -> None:
        """`tree` owns and ends the service if we start it. `http` replaces the spec's own."""
        super().__init__(spec, context, surroundings, tree)
        talks = http or spec.http
        assert talks is not None  # noqa: S101  open_agent chose by it
        self._http: Http = talks
        self._turn: HttpTurn | None = None
        self._death: asyncio.Task[float] | None = None
        """Returns the time at which the service ended after the last signal."""
        self._down = False
        self._alone = True
        self._aborts: set[asyncio.Task[None]] = set()
        self._base = (self._http.base or f"http://127.0.0.1:{surroundings.values.get('port', '')}").rstrip("/")
        self.started = Started((self._base,), self._base)

    async def open(self) -> None:
        """Start the service, if the spec says so, and wait until it is ready. Errors: AgentError."""
        if self._http.start:
            await self._start([self._around.fill(part) for part in self._http.start])
        until_s = self._context.clock.now() + self._spec.start_s
        while missing := await self._not_ready():
            if self._owned and self._owned.exit_code is not None:
                raise AgentError(f"{self._spec.path}: {await self._last_words()}")
            if self._context.clock.now() > until_s:
                log = f"; it printed:\n{self._log_lines()}" if self._owned else ""
                raise AgentError(
                    f"{self._spec.path}: {self._base} was not ready within {self._spec.start_s:g} s{missing}{log}"
                )
            await self._context.clock.sleep(POLL_S)

    async def close(self) -> None:
        """Close the connections of a running turn and of unanswered aborts."""
        if self._death is not None:
            self._death.cancel()
        if self._turn:
            await _close(self._turn.asking)
        for abort in list(self._aborts):
            await _close(abort)

    async def _say(self, text: str, kind: Stimulus, *, first: bool) -> Outcome:
        """Send the message and wait for the reply. A killed service is started again first, or the turn fails."""
        if await self._is_killed():
            try:
                await self._restart()
            except AgentError as bad:
                return Outcome(raised=str(bad), error=str(bad))
        if self._alone and self.leader is not None:
            self.leader.forget_output()
        self._ended = "by itself"
        turn = self._turn = HttpTurn(asyncio.create_task(self._ask(self._request(kind), text, NO_TIMEOUT)))
        dead = asyncio.create_task(self._killed_under(turn))
        over: set[asyncio.Future[Any]] = {turn.asking, dead, turn.refused}
        try:
            await asyncio.wait(over, return_when=asyncio.FIRST_COMPLETED)
            if turn.refused.done() and not turn.asking.done():
                raise AgentError(turn.refused.result())
        finally:
            dead.cancel()
            await _close(turn.asking)
        return await self._outcome(turn)

    async def _killed_under(self, turn: HttpTurn) -> None:
        """Return when the service was killed in this turn and no process that inherited its connection answered."""
        await turn.signalled.wait()
        assert self._owned is not None and self._delivered is not None  # noqa: S101  a signal was delivered
        await self._owned.ended()
        await self._context.clock.sleep(max(INHERITED_S, self._delivered.until_s - self._context.clock.now()))

    def beside(self) -> "HttpSession | None":
        """A second request to the same service; its output counts for both turns."""
        twin = copy(self)
        twin._turn, twin._alone = None, False
        return twin

    async def deliver_again(self, text: str, *, other_event: bool = False) -> None:
        """One more request. Its reply is for the front end, and no part of the turn."""
        with suppress(aiohttp.ClientError, OSError):
            await self._ask(self._http, text, NO_TIMEOUT)

    async def apart(
        self,
        name: str,
        context: AgentContext,
        surroundings: Surroundings,
        *,
        at_once: bool = True,
        struck: bool = False,
    ) -> "HttpSession":
        """Requests of another session to the same service; its output counts for both."""
        twin = copy(self)
        twin.name, twin._context, twin._around = name, context, surroundings
        twin._turn, twin._aborts = None, set()
        self._alone = twin._alone = False
        return twin

    def signalled(self, delivered: DeliveredSignal) -> None:
        """If the service ends by it before it answers, the turn counts as killed; the next message starts it again."""
        super().signalled(delivered)
        if self._owned is not None:
            self._death = asyncio.create_task(self._dies(self._owned))
        if self._turn is not None:
            self._turn.signalled.set()

    async def _dies(self, service: Owned) -> float:
        await service.ended()
        return self._context.clock.now()

    async def _is_killed(self) -> bool:
        if self._delivered is None or self._owned is None:
            return self._down
        if await self._has_died() or (self._shuts_down() and await self._has_died()):
            return True
        self._delivered = replace(self._delivered, until_s=-math.inf)  # it goes on; it may end its work before it obeys
        return False

    def _shuts_down(self) -> bool:
        """Whether it takes no connection any more; then it gets the time that a supervisor gives it."""
        assert self._delivered is not None  # noqa: S101  callers check
        port = self._around.values.get("port")
        if self._delivered.until_s < 0 or port is None or is_listening(int(port)):
            return False
        self._delivered = replace(self._delivered, until_s=self._context.clock.now() + SHUTS_DOWN_S)
        return True

    async def _restart(self) -> None:
        """Start it again; on another port if a process that it left behind still listens on the old one."""
        self._delivered = None
        values = self._around.values
        if "port" in values and is_listening(int(values["port"])):
            self._around = replace(self._around, values={**values, "port": str(free_port())})
            self._base = f"http://127.0.0.1:{self._around.values['port']}"
        self._down = True  # if it cannot start, the next message tries again
        await self.open()
        self._down = False

    @property
    def stops_by_hanging_up(self) -> bool:
        """Where the spec has no request for an abort."""
        return self._http.abort is None

    async def _abort(self) -> None:
        """Send the spec's abort request and do not wait for its reply; without one, close the turn's connection."""
        if self._http.abort is None or self._turn is None:
            await self._stop(0)
            return
        abort = asyncio.create_task(self._ask_to_stop(self._turn, self._http.abort))
        self._aborts.add(abort)
        abort.add_done_callback(self._aborts.discard)

    async def _ask_to_stop(self, turn: HttpTurn, abort: HttpCall) -> None:
        """Send the abort request. A refusal counts only if the turn goes on; the turn may end before the reply."""
        try:
            reply = await self._ask(abort, "", aiohttp.ClientTimeout(total=ABORT_TIMEOUT_S))
            reason, refused = f"HTTP {reply.status}", reply.status >= 400
        except (aiohttp.ClientError, OSError, TimeoutError) as bad:
            reason, refused = described(bad), isinstance(bad, aiohttp.ClientConnectorError)
        with self._context.log.open("a", encoding="utf-8") as log:
            log.write(f"[abort: {reason}]\n")
        if not refused or turn.signalled.is_set():
            return
        await asyncio.wait({turn.asking}, timeout=TOO_LATE_S)
        if not turn.asking.done():
            asked = f"{self._spec.path}: http.abort: {abort.method} {self._url(abort.url)}"
            turn.refused.set_result(f"{asked} failed ({reason}), and the turn goes on")

    async def _stop(self, grace_s: float) -> None:
        """Close the turn's connection; the service runs on, so `grace_s` has no effect."""
        if self._turn is not None:
            await _close(self._turn.asking)

    def _in_turn(self) -> bool:
        return self._turn is not None and not self._turn.asking.done()

    async def _not_ready(self) -> str:
        """What is missing; empty if it is ready."""
        return await why_not_ready(self._base, self._around.fill(self._http.ready))

    def _request(self, kind: Stimulus) -> HttpCall | Http:
        return self._http.wake_up or self._http if kind == "wake_up" else self._http

    async def _ask(self, request: HttpCall | Http, text: str, patience: aiohttp.ClientTimeout) -> HttpReply:
        values = {**self._around.values, "message": text}
        return await ask(self._url(request.url), request, values, patience)

    def _url(self, path: str) -> str:
        return self._base + self._around.fill(path)

    async def _outcome(self, turn: HttpTurn) -> Outcome:
        out, err = self._output()
        return replace(await self._told(turn), stdout=out, stderr=err, shared=not self._alone)

    async def _told(self, turn: HttpTurn) -> Outcome:
        """What the reply said, or how its connection ended."""
        if turn.asking.cancelled():
            if self._ended == "by itself":
                self._ended = "killed"  # only the kill cancels it without another ending
            return Outcome(ended=self._ended)
        broken = turn.asking.exception()
        if broken is not None:
            if self._ended == "by itself" and turn.signalled.is_set() and await self._has_died():
                self._ended = "killed"
            raised = await self._why(broken)
            return Outcome(raised=raised, error=raised, ended=self._ended)
        reply = turn.asking.result()
        error = OutputSource.parse(self._http.error).within(reply.text) if self._http.error else ""
        answer = OutputSource.parse(self._http.answer).within(reply.text)
        if reply.status >= 400:
            error, answer = error or reply.text, ""
        after_s = seconds_since(reply.whole_s)
        return Outcome(
            answer,
            error,
            status=reply.status,
            streamed=reply.streamed or OutputSource.parse(self._http.answer).kind in ("joined", "jsonl"),
            ended=self._ended,
            after_answer_s=after_s,
            usage=told_usage(self._spec.usage, (reply.text,)),
        )

    async def _has_died(self) -> bool:
        """Whether the service has ended by the last signal; waits for the time that the signal allows."""
        assert self._owned is not None and self._delivered is not None and self._death is not None  # noqa: S101
        left_s = max(0.5, self._delivered.until_s - self._context.clock.now()) if self._delivered.until_s > 0 else 0.0
        await asyncio.wait({self._death}, timeout=left_s)
        if not self._death.done():
            return False
        number, code = self._delivered.number, await self._owned.ended()
        cleanly = number != signal.SIGKILL and code in (0, 128 + number)  # of its own accord a service does not end so
        return cleanly or self._delivered.ended(code, self._death.result())

    async def _why(self, broken: BaseException) -> str:
        """Describe a broken connection, with the end of our service if it has ended."""
        if self._owned is not None:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._owned.ended(), 0.5)
                return f"{described(broken)}: {await self._last_words()}"
        return described(broken)

    async def _last_words(self) -> str:
        assert self._owned is not None  # noqa: S101  callers check
        code = await self._owned.finished()
        how = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
        return f"the service ended {how}; it printed:\n{self._log_lines()}"

    def _log_lines(self) -> str:
        lines = "\n".join(self._output()).strip().splitlines()
        return "\n".join(lines[-LAST_LINES:]) or "nothing"

    def _output(self) -> tuple[str, str]:
        return self._owned.output() if self._owned is not None else ("", "")


async def _close(asking: asyncio.Task[Any]) -> None:
    """Cancel a request, which closes its connection."""
    asking.cancel()
    await asyncio.wait({asking})
