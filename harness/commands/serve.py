"""The fake provider without a campaign: `wedgehog serve`, and the same inside a test.

agent ─▶ fake provider (with a `Pipe` on a connection with a fault) ◀─ sessions ◀─ admin API ◀─ test
"""

import asyncio
import errno
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Self, TypeVar

from wedgehog.fake_llm.admin.api import Admin
from wedgehog.fake_llm.admin.sessions import ProviderSessions
from wedgehog.fake_llm.balance import BalanceConfig
from wedgehog.fake_llm.server import FakeLLM
from wedgehog.harness.commands.loop_thread import LoopThread
from wedgehog.harness.commands.script_session import FaultyLink, ScriptSession
from wedgehog.harness.network.direct_link import DirectLink
from wedgehog.harness.network.ports import HOST
from wedgehog.harness.record.clock import WallClock
from wedgehog.harness.record.ledger import price
from wedgehog.harness.scenario.document import BadFileError, Document, load, read

T = TypeVar("T")
PUT = Path("script")
"""The name of a script without a file, in errors."""


class Provider:
    """A fake provider with a script, for tests: in its own thread, or (`async with`) on the running event loop.

    >>> with Provider({"replies": [{"reply": {"text": "Hi there!"}}]}) as llm:  # doctest: +SKIP
    ...     client = OpenAI(base_url=f"{llm.url}/v1", api_key="any")

    `script` is a file's path, a YAML text, or plain data. `models` are the names that exist (None: any). `balance`
    replaces the script's balance. A bad script raises BadFileError, a used port OSError, each with one line.
    """

    def __init__(
        self,
        script: Path | str | Mapping[str, Any],
        *,
        strict: bool = True,
        models: Sequence[str] | None = None,
        balance: BalanceConfig | None = None,
        host: str = HOST,
        port: int = 0,
        admin_port: int = 0,
        log: Callable[[str], None] | None = None,
    ) -> None:
        """Port 0 takes a free port; `log` gets one line for each finished request."""
        self._faulty = FaultyLink(WallClock())
        self._balance = balance
        self._sessions = ProviderSessions(self._read_script(_named(script)), price=_price, log=log)
        self._strict, self._models = strict, models
        self._listen, self._admin = (host, port), Admin(self._sessions, self._read, admin_port)
        self._stack = AsyncExitStack()
        self._thread: LoopThread | None = None
        self.url = ""
        """The address for agents, without a path."""

    @property
    def admin_url(self) -> str:
        """The address of the admin API, with its prefix."""
        return self._admin.url

    def session_url(self, name: str) -> str:
        """The address of one session, without a path."""
        return f"{self.url}/s/{name}"

    # ---- for tests

    def put(self, script: Path | str | Mapping[str, Any], session: str | None = None) -> None:
        """Play another script from the next request on, in all sessions or in one."""
        session_script = self._read_script(_named(script))
        self._there(lambda: self._sessions.put(session_script, session))

    def ledger(self, session: str | None = None) -> list[dict[str, Any]]:
        """An entry for each request, as in the admin API."""
        return self._there(lambda: self._sessions.ledger(session))

    def request(self, call: int) -> Any:
        """What a request asked, as JSON; None if it had no body. `call` is its number in the ledger.

        The last 100 of a session are kept. Its own API key is `***`. Errors: LookupError, ValueError if it was no JSON.
        """
        body = self._there(lambda: self._sessions.body(call))
        if body is None:
            raise LookupError(f"there is no body of call {call}")
        return json.loads(body) if body else None

    def balance(self, session: str) -> dict[str, Any] | None:
        """The rest of a session's prepaid balance, None if it has no balance."""
        left = self._there(lambda: self._sessions.session(session).balance)
        return left.as_json() if left else None

    def hold(self, session: str | None = None, *, event: int | None = None, byte: int | None = None) -> int:
        """Add a gate that holds replies after an event or a byte, else before the first byte; return its number."""
        return self._there(lambda: self._sessions.gates.hold(session, event=event, byte=byte).number)

    def held(self, gate: int) -> list[int]:
        """The calls held at a gate now."""
        found = self._sessions.gates.get(gate)
        return self._there(lambda: list(found.held) if found else [])

    def release(self, gate: int) -> None:
        """Open and remove a gate."""
        if found := self._sessions.gates.get(gate):
            self._there(lambda: self._sessions.gates.open(found))

    def reset(self, session: str | None = None) -> None:
        """Clear the request logs and positions, open the gates, refill balances; scripts stay."""
        self._there(lambda: self._sessions.reset(session))

    # ---- start and stop

    async def __aenter__(self) -> Self:
        """Listen, on the running event loop."""
        async with AsyncExitStack() as stack:
            llm = FakeLLM(self._sessions, self._sessions, strict=self._strict, models=self._models, listens=False)
            await stack.enter_async_context(llm)
            link = self._faulty.link = DirectLink("llm", llm, self._listen)
            await _listening(link.listen(), self._listen)
            stack.callback(link.release)
            stack.push_async_callback(self._faulty.close)
            await _listening(stack.enter_async_context(self._admin), (HOST, self._admin.port))
            self.url = f"http://{link.address[0]}:{link.address[1]}"
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self._stack.aclose()

    def __enter__(self) -> Self:
        """Listen, in a new thread."""
        thread = LoopThread()
        try:
            entered = thread.do(self.__aenter__())
        except BaseException:
            thread.end()
            raise
        self._thread = thread
        return entered

    def __exit__(self, *exc_info: object) -> None:
        thread, self._thread = self._thread, None
        assert thread, "`__enter__` came first"  # noqa: S101
        try:
            thread.do(self.__aexit__(*exc_info))
        finally:
            thread.end()

    def _there(self, act: Callable[[], T]) -> T:
        """Call a function in the server's thread."""

        async def acting() -> T:
            return act()

        return self._thread.do(acting()) if self._thread else act()

    def _read(self, text: str) -> ScriptSession:
        """Read a script's text from HTTP; raise ValueError, one line, if it is wrong."""
        try:
            return self._read_script(text)
        except BadFileError as bad:
            raise ValueError("; ".join(str(bad).splitlines())) from None

    def _read_script(self, script: Path | str | Mapping[str, Any]) -> ScriptSession:
        document, text = _document(script)
        session_script = ScriptSession(document, text, self._faulty)
        session_script.balance = self._balance or session_script.balance
        try:
            if session_script.balance:
                session_script.balance.balance(_price)
        except ValueError as wrong:
            raise document.error(("balance",), str(wrong)) from None
        return session_script


def _named(script: Path | str | Mapping[str, Any]) -> Path | str | Mapping[str, Any]:
    """The name of a YAML file is its path: as a text it would be no script."""
    is_name = isinstance(script, str) and "\n" not in script and script.endswith((".yaml", ".yml"))
    return Path(str(script)) if is_name else script


def _document(script: Path | str | Mapping[str, Any]) -> tuple[Document, str]:
    if isinstance(script, Path):
        return load(script), script.read_text(encoding="utf-8-sig")
    text = script if isinstance(script, str) else json.dumps(script, ensure_ascii=False, indent=1)
    return read(text, PUT), text


def _price(model: str, input_tokens: int, output_tokens: int) -> Decimal | None:
    """Today's price in the pinned table, None for an unknown model."""
    try:
        return price(model, input_tokens, output_tokens, datetime.now(UTC))
    except LookupError:
        return None


async def _listening(opening: Any, address: tuple[str, int]) -> Any:
    try:
        return await opening
    except OSError as wrong:
        hint = " (--port 0 takes a free one)" if wrong.errno == errno.EADDRINUSE else ""
        said = f"can't listen at {address[0]}:{address[1]}: {wrong.strerror}{hint}"
        raise OSError(wrong.errno, said) from None


def prepaid(usd: float | None, tokens: int | None) -> BalanceConfig | None:
    """The balance of two options, None without them; raise ValueError if both are given."""
    if usd is not None and tokens is not None:
        raise ValueError("a balance is in dollars or in tokens, not in both")
    return None if usd is None and tokens is None else BalanceConfig(usd=usd, tokens=tokens)


def fast_loop() -> asyncio.AbstractEventLoop:
    """Return the event loop of `wedgehog serve`: uvloop's where it is installed."""
    try:
        import uvloop
    except ModuleNotFoundError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


async def serve(
    path: Path,
    host: str,
    port: int,
    *,
    strict: bool,
    say: Callable[[str], None],
    admin_port: int = 0,
    balance: BalanceConfig | None = None,
    log: Callable[[str], None] | None = None,
) -> None:
    """Serve until cancelled, at `host`:`port` (0: a free port). Errors: BadFileError, and OSError with the address."""
    provider = Provider(path, strict=strict, balance=balance, host=host, port=port, admin_port=admin_port, log=log)
    async with provider as llm:
        say(f"wedgehog: the fake model answers at {llm.url} (Ctrl-C ends it)")
        say(f"wedgehog: its request log, gates and script: {llm.admin_url}")
        await asyncio.Event().wait()
