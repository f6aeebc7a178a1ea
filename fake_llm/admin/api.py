"""The admin API: HTTP control of a running server, for tests.

It has its own port: no fault on a link affects it, and an agent does not have its address. It listens only on loopback,
and refuses web pages. `?session=NAME` restricts any request to one session.
"""

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from inspect import isawaitable
from typing import Any, Final, TypeAlias

from wedgehog.fake_llm.admin.breakpoints import Breakpoint
from wedgehog.fake_llm.admin.sessions import ProviderSessions, SessionScript
from wedgehog.fake_llm.connection import Connection, Listener
from wedgehog.fake_llm.http_request import Incoming
from wedgehog.fake_llm.observer import Conn
from wedgehog.fake_llm.request import counted, json_object
from wedgehog.fake_llm.wire_reply import whole

PREFIX: Final = "/_wedgehog"

_LARGEST_SCRIPT: Final = 2**20
_LONGEST_WAIT_S: Final = 60.0
_LOCAL: Final = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:\d+)?")
_SESSION: Final = re.compile(r"[\w.-]{1,64}", re.ASCII)

ScriptReader: TypeAlias = Callable[[str], SessionScript]
"""Reads a script's text; raises ValueError with one line that names the error's place."""


class AdminRequestError(Exception):
    """A request that cannot be answered; the text says why."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class AdminRequest:
    """A request to the admin API: `rest` is its path without prefix and name."""

    rest: str
    query: Mapping[str, str]
    body: bytes

    @property
    def session(self) -> str | None:
        """The named session; None: all sessions."""
        name = self.query.get("session")
        if name is not None and not _SESSION.fullmatch(name):
            raise AdminRequestError(f"session: expected up to 64 letters, digits, '.', '_' or '-', found {name!r}")
        return name


Handler: TypeAlias = Callable[[AdminRequest], object]
"""Answers a request with JSON or a text, at once or as an awaitable."""


class Admin(Listener):
    """Serves the admin API of a server's sessions; use it as an async context manager.

    >>> async with FakeLLM(sessions, sessions) as llm, Admin(sessions, read) as admin:  # doctest: +SKIP
    ...     print(admin.url)
    """

    def __init__(self, sessions: ProviderSessions, read: ScriptReader, port: int = 0) -> None:
        """`read` parses a script's text; port 0 takes a free port."""
        super().__init__(port)
        self._sessions, self._read = sessions, read
        self._answers: dict[tuple[str, str], Handler] = {
            ("GET", "health"): self._health,
            ("GET", "sessions"): lambda asked: {"sessions": [one.as_json() for one in sessions.all(asked.session)]},
            ("GET", "script"): lambda asked: sessions.script(asked.session).text,
            ("PUT", "script"): self._put,
            ("GET", "ledger"): lambda asked: {"attempts": sessions.ledger(asked.session)},
            ("GET", "requests"): self._request,
            ("GET", "gates"): self._gates,
            ("POST", "gates"): self._hold,
            ("DELETE", "gates"): self._let_go,
            ("POST", "reset"): self._reset,
        }

    @property
    def url(self) -> str:
        """The address, with the prefix."""
        return f"{super().url}{PREFIX}"

    def connection(self) -> Connection:
        """Return the protocol of one connection."""
        return Connection(self._opened, self._answer, self._forgotten)

    def _forgotten(self, connection: Connection) -> None:
        self.connections.pop(connection, None)

    def _opened(self, connection: Connection) -> Conn:
        self.connections[connection] = None
        return Conn(len(self.connections), ("", 0))

    async def _answer(self, connection: Connection, incoming: Incoming) -> None:
        await connection.can_wait()
        try:
            told, status = await self._told(incoming), 200
        except AdminRequestError as refused:
            told, status = {"error": str(refused)}, refused.status
        plain = isinstance(told, str)
        text = told if isinstance(told, str) else json.dumps(told, ensure_ascii=False, indent=1) + "\n"
        type_ = "text/yaml; charset=utf-8" if plain else "application/json"
        wire_reply = whole(status, text.encode(), (), content_type=type_, closes=not incoming.head.keep_alive)
        connection.write(wire_reply.head + wire_reply.body)
        connection.by_us = wire_reply.closes

    async def _told(self, incoming: Incoming) -> object:
        if incoming.trouble:
            trouble = incoming.trouble
            raise AdminRequestError(trouble.message or HTTPStatus(trouble.status).phrase, trouble.status)
        if "origin" in incoming.head.headers or not _LOCAL.fullmatch(incoming.head.headers.get("host", "localhost")):
            raise AdminRequestError("the admin API is for programs on this machine, not for web pages", 403)
        root, _, path = incoming.head.path.partition(f"{PREFIX}/")
        name, _, rest = path.partition("/")
        answer = self._answers.get((incoming.head.method, name)) if not root else None
        if answer is None:
            known = ", ".join(f"{method} {PREFIX}/{name}" for method, name in self._answers)
            raise AdminRequestError(
                f"no such thing: {incoming.head.method} {incoming.head.path} (there are {known})", 404
            )
        told = answer(AdminRequest(rest, incoming.head.query, incoming.body))
        return await told if isawaitable(told) else told

    # ---- what there is

    def _health(self, asked: AdminRequest) -> object:
        sessions = self._sessions
        return {"ok": True, "sessions": len(sessions.all()), "calls_under_way": sessions.calls_under_way}

    async def _put(self, asked: AdminRequest) -> object:
        if len(asked.body) > _LARGEST_SCRIPT:
            raise AdminRequestError(f"a script has {_LARGEST_SCRIPT} bytes at most", 413)
        try:
            # In a thread: a large script, or loading the prices, would delay every stream.
            script = await asyncio.to_thread(self._read, asked.body.decode("utf-8-sig"))
            self._sessions.put(script, asked.session)
        except UnicodeDecodeError:
            raise AdminRequestError("script: not UTF-8 text") from None
        except ValueError as wrong:
            raise AdminRequestError(str(wrong)) from None
        return {"ok": True}

    def _reset(self, asked: AdminRequest) -> object:
        self._sessions.reset(asked.session)
        return {"ok": True}

    def _request(self, asked: AdminRequest) -> object:
        body = self._sessions.body(int(asked.rest)) if re.fullmatch("[0-9]{1,9}", asked.rest) else None
        if body is None:
            raise AdminRequestError(f"there is no body of call {asked.rest!r}: the last 100 of a session are kept", 404)
        return json_object(body) or body.decode(errors="replace")

    # ---- gates

    async def _gates(self, asked: AdminRequest) -> object:
        if asked.rest:
            gate = self._gate(asked.rest)
            await gate.reached(_wait_s(asked.query.get("wait_s", "0")))
            return gate.as_json()
        return {"gates": [gate.as_json() for gate in self._sessions.gates.all(asked.session)]}

    def _hold(self, asked: AdminRequest) -> object:
        at = json_object(asked.body or b"{}")
        if at is None or len(at) > 1 or any(name not in ("event", "byte") for name in at):
            raise AdminRequestError('a gate is {"event": k}, {"byte": n}, or {} for before the first byte')
        for name, value in at.items():
            if (counted(value) or 0) < 0 or counted(value) is None:
                raise AdminRequestError(f"{name}: expected a whole number of at least 0, found {json.dumps(value)}")
        return self._sessions.gates.hold(asked.session, **at).as_json()

    def _let_go(self, asked: AdminRequest) -> object:
        gates = [self._gate(asked.rest)] if asked.rest else self._sessions.gates.all(asked.session)
        told: list[Any] = [gate.as_json() for gate in gates]
        for gate in gates:
            self._sessions.gates.open(gate)
        return {"opened": told}

    def _gate(self, number: str) -> Breakpoint:
        gate = self._sessions.gates.get(int(number)) if re.fullmatch("[0-9]{1,9}", number) else None
        if gate is None:
            raise AdminRequestError(f"there is no gate {number!r}", 404)
        return gate


def _wait_s(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= _LONGEST_WAIT_S:
        raise AdminRequestError(f"wait_s: expected 0 to {_LONGEST_WAIT_S:g} seconds, found {text!r}")
    return seconds
