"""An agent that is a service: started once per run, or already running; one HTTP request is one turn."""

import asyncio
import signal
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

import aiohttp

from wedgehog.harness.agents.base import AgentContext, AgentError, DeliveredSignal, Outcome, Stimulus, TurnEnding
from wedgehog.harness.agents.sources import OutputSource
from wedgehog.harness.agents.spec import AgentSpec, Http, HttpCall
from wedgehog.harness.agents.surroundings import Surroundings
from wedgehog.harness.agents.templates import expand_all
from wedgehog.harness.network.ports import free_port, is_listening
from wedgehog.harness.sandbox import Owned, Started, Tree, what_runs

POLL_S = 0.05
INHERITED_S = 1.0
"""For whoever inherited a killed service's connection to answer on it, at least."""
POLL_TIMEOUT_S = 2.0
ABORT_TIMEOUT_S = 10.0
TOO_LATE_S = 1.0
"""A turn that is over so soon after its abort was refused was ending already."""
LAST_LINES = 20

_PATIENT = aiohttp.ClientTimeout(total=None, connect=None, sock_connect=None, sock_read=None)
"""The front end's patience is the scenario's, not the client library's."""


@dataclass(frozen=True, slots=True)
class HttpReply:
    """What came back."""

    status: int
    text: str


@dataclass(slots=True)
class _HttpTurn:
    asking: asyncio.Task[HttpReply]
    ended: TurnEnding = "by itself"
    struck: asyncio.Event = field(default_factory=asyncio.Event)
    """A signal to end the service was delivered."""
    refused: asyncio.Future[str] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    """How the request that was to stop the turn came to nothing."""


class HttpSession:
    """Sends each message as its request; the turn's connection can be closed while the service works on."""

    def __init__(
        self, spec: AgentSpec, place: AgentContext, surroundings: Surroundings, tree: Tree, http: Http | None = None
    ) -> None:
        """`tree` owns the service if we start it; who made it ends it. `http`: where it is not the spec's own."""
        talks = http or spec.http
        assert talks is not None  # noqa: S101  open_agent chose by it
        self._spec, self._place, self._around, self._tree = spec, place, surroundings, tree
        self._http: Http = talks
        self._service: Owned | None = None
        self._turn: _HttpTurn | None = None
        self._blow: DeliveredSignal | None = None
        self._death: asyncio.Task[float] | None = None
        """Of the service, after the last blow; when."""
        self._down = False
        self._alone = True
        self._aborts: set[asyncio.Task[None]] = set()
        self._base = (self._http.base or f"http://127.0.0.1:{surroundings.values.get('port', '')}").rstrip("/")
        self._started = Started((self._base,), self._base)

    @property
    def started(self) -> Started:
        """The service; one that already ran is known by its address alone."""
        return self._started

    async def open(self) -> None:
        """Start the service, if it is ours to start, and wait until it is ready. Errors: AgentError."""
        await self._open()

    async def _open(self) -> None:
        if self._http.start:
            await self._start([self._around.fill(part) for part in self._http.start])
        until_s = self._place.clock.now() + self._spec.start_s
        while not await self._is_ready():
            if self._service and self._service.exit_code is not None:
                raise AgentError(f"{self._spec.path}: {await self._last_words()}")
            if self._place.clock.now() > until_s:
                said = f"; it said:\n{self._log_lines()}" if self._service else ""
                raise AgentError(f"{self._spec.path}: {self._base} was not ready within {self._spec.start_s:g} s{said}")
            await self._place.clock.sleep(POLL_S)

    async def close(self) -> None:
        """Close the connection of a turn that is still under way, and those of aborts that nobody answered."""
        if self._death is not None:
            self._death.cancel()
        if self._turn:
            await _close(self._turn.asking)
        for abort in list(self._aborts):
            await _close(abort)

    async def say(self, text: str, *, kind: Stimulus = "user", first: bool) -> Outcome:
        """Send the message and wait for the reply, for as long as it takes. A service that was killed is started anew.

        Where that fails, it is this turn's failure: what a crash leaves behind is the agent's business.

        Raises:
            AgentError: the service refused the abort, and the turn went on.
        """
        if await self._is_killed():
            try:
                await self._again()
            except AgentError as bad:
                return Outcome(raised=str(bad), error=str(bad))
        self._forget_output()
        turn = self._turn = _HttpTurn(asyncio.create_task(self._ask(self._request(kind), text, _PATIENT)))
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

    async def _killed_under(self, turn: _HttpTurn) -> None:
        """Return when the service was killed in this turn and whoever inherited its connection did not answer."""
        await turn.struck.wait()
        assert self._service is not None and self._blow is not None  # noqa: S101  it was struck
        await self._service.ended()
        await self._place.clock.sleep(max(INHERITED_S, self._blow.until_s - self._place.clock.now()))

    @property
    def leader(self) -> Owned | None:
        """The service that we started; it lives between messages too."""
        return self._service if self._service is not None and self._service.exit_code is None else None

    def beside(self) -> "HttpSession | None":
        """A second request to the same service; what the service prints is both turns'."""
        twin = copy(self)
        twin._turn, twin._alone = None, False
        return twin

    def struck(self, blow: DeliveredSignal) -> None:
        """If the service ends by it instead of answering, the turn was killed; the next message starts it again."""
        self._blow = blow
        if self._service is not None:
            self._death = asyncio.create_task(self._dies(self._service))
        if self._turn is not None:
            self._turn.struck.set()

    async def _dies(self, service: Owned) -> float:
        await service.ended()
        return self._place.clock.now()

    async def _is_killed(self) -> bool:
        """Whether the service ended by the last blow; it gets the time that it has for that."""
        if self._blow is None or self._service is None:
            return self._down
        if await self._ended_by_blow():
            return True
        self._blow = None  # it has survived, and whatever ends it later is its own
        return False

    async def _again(self) -> None:
        """Start it as it was started first, on another port where somebody whom it left behind still listens."""
        self._blow = None
        values = self._around.values
        if "port" in values and is_listening(int(values["port"])):
            self._around = replace(self._around, values={**values, "port": str(free_port())})
            self._base = f"http://127.0.0.1:{self._around.values['port']}"
        self._down = True  # where it cannot start, the next message tries again
        await self._open()
        self._down = False

    async def abort(self) -> None:
        """The spec's own request for it, whose answer nobody waits for; without one, its user closes the connection."""
        turn = self._running("aborted")
        if turn is None:
            return
        if self._http.abort is None:
            await _close(turn.asking)
            return
        abort = asyncio.create_task(self._ask_to_stop(turn, self._http.abort))
        self._aborts.add(abort)
        abort.add_done_callback(self._aborts.discard)

    async def _ask_to_stop(self, turn: _HttpTurn, abort: HttpCall) -> None:
        """The turn may be over long before this is answered; a refusal counts only while it goes on."""
        try:
            reply = await self._ask(abort, "", aiohttp.ClientTimeout(total=ABORT_TIMEOUT_S))
            said, refused = f"HTTP {reply.status}", reply.status >= 400
        except (aiohttp.ClientError, OSError, TimeoutError) as bad:
            said, refused = _described(bad), isinstance(bad, aiohttp.ClientConnectorError)
        self._note(f"abort: {said}")
        if not refused or turn.struck.is_set():
            return
        await asyncio.wait({turn.asking}, timeout=TOO_LATE_S)
        if not turn.asking.done():
            asked = f"{self._spec.path}: http.abort: {abort.method} {self._url(abort.url)}"
            turn.refused.set_result(f"{asked} came to {said}, and the turn goes on")

    async def give_up(self) -> None:
        """The front end closes its connection; the service stays."""
        if turn := self._running("gave up"):
            await _close(turn.asking)

    async def end_turn(self, grace_s: float = 5.0) -> None:
        """The deadline does the same: a service is not ended by one turn, so `grace_s` is nobody's."""
        if turn := self._running("deadline"):
            await _close(turn.asking)

    def _running(self, ended: TurnEnding) -> _HttpTurn | None:
        if self._turn is None or self._turn.asking.done():
            return None
        self._turn.ended = ended
        return self._turn

    async def _start(self, argv: list[str]) -> None:
        env, place = self._around.env, self._place
        try:
            self._service = await self._tree.start(argv, env=env, cwd=place.cwd, log=place.log)
        except (OSError, ValueError) as bad:
            why = bad.strerror if isinstance(bad, OSError) else bad
            raise AgentError(f"{self._spec.path}: cannot start {argv[0]!r}: {why}") from None
        self._started = what_runs(argv, place.cwd, env.get("PATH"), self._service.pid)

    async def _is_ready(self) -> bool:
        """Any answer but a server's error: not every service has a health page."""
        patience = aiohttp.ClientTimeout(total=POLL_TIMEOUT_S)
        try:
            async with (
                aiohttp.ClientSession(timeout=patience) as client,
                client.get(self._url(self._http.ready)) as reply,
            ):
                return reply.status < 500
        except (aiohttp.ClientError, OSError, TimeoutError):
            return False

    def _request(self, kind: Stimulus) -> HttpCall | Http:
        if kind != "wake_up":
            return self._http
        if self._http.wake_up is None:
            raise AgentError(f"{self._spec.path}: the spec has no http wake_up")
        return self._http.wake_up

    async def _ask(self, request: HttpCall | Http, text: str, patience: aiohttp.ClientTimeout) -> HttpReply:
        """One request on a connection of its own, which closes with it. The HTTP client never repeats a POST."""
        values = {**self._around.values, "message": text}
        method = request.method if isinstance(request, HttpCall) else "POST"
        body, headers = expand_all(request.body, values), expand_all(request.headers, values)
        given: dict[str, Any] = {} if body is None else {"json": body}
        async with (
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True), timeout=patience) as client,
            client.request(method, self._url(request.url), headers=headers, **given) as reply,
        ):
            return HttpReply(reply.status, await reply.text(errors="replace"))

    def _url(self, path: str) -> str:
        return self._base + self._around.fill(path)

    async def _outcome(self, turn: _HttpTurn) -> Outcome:
        out, err = self._output()
        if turn.asking.cancelled():
            if turn.ended == "by itself":
                turn.ended = "killed"  # nobody else cancels it
            return Outcome(stdout=out, stderr=err, ended=turn.ended)
        broken = turn.asking.exception()
        if broken is not None:
            if turn.ended == "by itself" and turn.struck.is_set() and await self._ended_by_blow():
                turn.ended = "killed"
            raised = await self._why(broken)
            return Outcome(raised=raised, error=raised, stdout=out, stderr=err, ended=turn.ended)
        reply = turn.asking.result()
        error = OutputSource.parse(self._http.error).within(reply.text) if self._http.error else ""
        answer = OutputSource.parse(self._http.answer).within(reply.text)
        if reply.status >= 400:
            error, answer = error or reply.text, ""
        return Outcome(answer, error, status=reply.status, stdout=out, stderr=err, ended=turn.ended)

    async def _ended_by_blow(self) -> bool:
        assert self._service is not None and self._blow is not None and self._death is not None  # noqa: S101  as above
        left_s = max(0.5, self._blow.until_s - self._place.clock.now())
        await asyncio.wait({self._death}, timeout=left_s)
        if not self._death.done():
            return False
        return self._blow.ended(await self._service.ended(), self._death.result())

    async def _why(self, broken: BaseException) -> str:
        """What a broken connection means: with a service of ours, perhaps its end."""
        if self._service is not None:
            try:
                await asyncio.wait_for(self._service.ended(), 0.5)
            except TimeoutError:
                return _described(broken)
            return f"{_described(broken)}: {await self._last_words()}"
        return _described(broken)

    async def _last_words(self) -> str:
        assert self._service is not None  # noqa: S101  asked only then
        code = await self._service.finished()
        how = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
        return f"the service ended {how}; it said:\n{self._log_lines()}"

    def _log_lines(self) -> str:
        lines = "\n".join(self._output()).strip().splitlines()
        return "\n".join(lines[-LAST_LINES:]) or "nothing"

    def _output(self) -> tuple[str, str]:
        if self._service is None:
            return "", ""
        self._service.stdout.read_now()
        self._service.stderr.read_now()
        return self._service.stdout.text(), self._service.stderr.text()

    def _forget_output(self) -> None:
        if self._alone and self._service is not None and self._service.exit_code is None:
            self._service.stdout.forget()
            self._service.stderr.forget()

    def _note(self, words: str) -> None:
        with self._place.log.open("a", encoding="utf-8") as log:
            log.write(f"[{words}]\n")


async def _close(asking: asyncio.Task[Any]) -> None:
    """End a request: cancelling it closes its connection."""
    asking.cancel()
    await asyncio.wait({asking})


def _described(bad: BaseException) -> str:
    return f"{type(bad).__name__}: {bad}" if str(bad) else type(bad).__name__
