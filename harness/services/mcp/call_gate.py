"""Whether a request over HTTP may reach the tools, or which refusal the server writes."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Protocol

from wedgehog.harness.faults.result_fault import CallRefusal, Result
from wedgehog.harness.network.base import Address
from wedgehog.harness.services.beacon import dotted
from wedgehog.harness.services.mcp.offers import Offers

ConnectionOffset = tuple[Address, int]
"""A connection's address as the link's upstream sees it, and the bytes that it has carried to the agent."""


class ResultSource(Protocol):
    """The injector's interface for tool calls and their results."""

    def refused(self, token: str) -> tuple[CallRefusal | None, Sequence[Any]]:
        """Return the refusal of a call, None if it may begin, and the faults that this applies."""

    def refused_request(self, authorized: bool) -> tuple[CallRefusal | None, Sequence[Any]]:
        """Return the refusal of any request, None if it may begin, and the faults that this applies."""

    def asked(self, token: str, result: Result) -> tuple[Result, Sequence[Any]]:
        """Return the result of a call with the plan's faults applied, and these faults."""

    def written(self, faults: Sequence[Any]) -> None:
        """Report that the response with these faults has been written."""

    async def at(self, token: str, offset: ConnectionOffset | None, /) -> None:
        """Arm the faults that are due before a result is written; return when its bytes may pass."""


class CallRecorder(Protocol):
    """The recorder's interface for calls and refused requests."""

    def called(self, tool: str, token: str, server: int) -> None:
        """Record a call to a server."""

    def refused(self, status: int, server: int) -> None:
        """Record that a server has refused a request."""


class CallGate:
    """The refusals of one run, by number until they are written."""

    def __init__(self, offers: Offers, source: ResultSource, records: CallRecorder) -> None:
        """`offers` are the model's calls; `source` says which of them is refused."""
        self._offers, self._source, self._records = offers, source, records
        self._numbers = itertools.count(1)
        self._faults: dict[int, tuple[Sequence[Any], int]] = {}

    def refusal(self, server: int, name: str, arguments: Mapping[str, Any], authorized: bool = False) -> dict[str, Any]:
        """The refusal of a request to this server, empty if it may begin; `name` is empty if it is no tool call."""
        token = self._offers.next_match(name, arguments) if name else ""
        refusal, faults = self._source.refused(dotted(token)) if token else (None, ())
        if refusal is None:
            refusal, faults = self._source.refused_request(authorized)
        if refusal is None:
            return {}
        if name:
            self._records.called(name, dotted(token) if token else "", server)
        number = next(self._numbers)
        self._faults[number] = faults, refusal.status
        return {"refusal": number, **asdict(refusal)}

    def written(self, server: int, number: int) -> None:
        """The refusal of this number has reached the agent's side of the front."""
        faults, status = self._faults.pop(number)
        self._records.refused(status, server)
        self._source.written(faults)
