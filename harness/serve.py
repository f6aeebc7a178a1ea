"""The fake provider on its own, with a script file (`wedgehog serve`); wire faults are made by the relay before it."""

import asyncio
import errno
from collections.abc import Callable, Sequence
from pathlib import Path

from wedgehog.fake_llm.conversation import Conversation
from wedgehog.fake_llm.observer import Fact, Point
from wedgehog.fake_llm.reply import Answer
from wedgehog.fake_llm.server import FakeLLM
from wedgehog.fake_llm.when import ReplyLine, ScriptFile, WhenScript
from wedgehog.harness.clock import Clock, WallClock
from wedgehog.harness.document import Document, load
from wedgehog.harness.faults.answering import Context, ReplyFault
from wedgehog.harness.faults.base import WireFault
from wedgehog.harness.faults.wire.stall import Stall
from wedgehog.harness.network.base import Downstream, Link
from wedgehog.harness.network.relay import EmbeddedNetwork
from wedgehog.harness.plan import PlannedFault
from wedgehog.harness.scenario import FaultWords
from wedgehog.harness.spot import BEFORE_HEAD, spot


class HarmedScript:
    """A script whose lines may carry a fault; it is the fake's script and its observer."""

    def __init__(self, document: Document, clock: Clock) -> None:
        """Read the script and every fault in it.

        Raises:
            BadFile: one line with file, line and what was expected.
        """
        self._script = WhenScript(document.into(ScriptFile))
        self._faults: dict[int, PlannedFault] = {}
        self._clock = clock
        self._met: dict[int, PlannedFault] = {}
        self.link: Link | None = None
        for index, line in enumerate(self._script.lines):
            if line.fault is not None:
                self._faults[id(line)] = _planned(document, index)

    def answer(self, call: int, conversation: Conversation) -> Answer:
        """What the first fitting line says, after its reply fault."""
        line: ReplyLine = self._script.line(conversation)
        planned = self._faults.get(id(line))
        if planned is None:
            return line.answer()
        self._met[call] = planned
        if not isinstance(planned.fault, ReplyFault):
            return line.answer()
        size = sum(len(message.text) for message in conversation.messages)
        context = Context(event=planned.trigger.event, request_bytes=size, now=self._clock.wall())
        return planned.fault.on_answer(line.answer(), context)

    def saw(self, fact: Fact) -> None:
        """Nobody writes a history here."""

    async def gate(self, point: Point) -> Sequence[int]:
        """Strike the reply at its fault's spot."""
        planned = self._met.get(point.call)
        if planned is None or not isinstance(planned.fault, WireFault) or self.link is None:
            return ()
        at, fault = spot(planned.trigger, point), planned.fault
        resumes = isinstance(fault, Stall) and fault.for_s != "forever"
        if at is None or (point.at == BEFORE_HEAD and at > BEFORE_HEAD and (resumes or fault.armed == "at_spot")):
            return () if at is None else (at,)
        if isinstance(fault, Stall) and fault.for_s != "forever":
            await self._clock.sleep(float(fault.for_s))
        elif point.at in (BEFORE_HEAD, at):
            del self._met[point.call]
            where = point.carried + (0 if at == BEFORE_HEAD else point.head + at)
            await self.link.strike(fault, Downstream(point.conn.peer, where))
        return ()


def _planned(document: Document, index: int) -> PlannedFault:
    words = document.into(FaultWords, at=("replies", index, "fault"))
    planned = words.planned()
    if words.link != "llm" or planned.trigger.before_request or planned.fault.family == "actor":
        raise document.error(("replies", index, "fault"), f"{planned.fault.name} can't strike a reply of `serve`")
    return planned


async def serve(path: Path, host: str, port: int, *, strict: bool, say: Callable[[str], None]) -> None:
    """Serve until cancelled, at `host`:`port` (0: a free port).

    Raises:
        BadFile: the script can't be read as one.
        OSError: nobody can listen there; its `strerror` names the address and says why.
    """
    clock = WallClock()
    script = HarmedScript(load(path), clock)
    async with FakeLLM(script, script, strict=strict) as llm, EmbeddedNetwork() as network:
        try:
            link = await network.open_link("llm", (llm.host, llm.port), resets=True, listen=(host, port))
        except OSError as wrong:
            hint = " (--port 0 takes a free one)" if wrong.errno == errno.EADDRINUSE else ""
            raise OSError(wrong.errno, f"can't listen at {host}:{port}: {wrong.strerror}{hint}") from None
        script.link = link
        say(f"wedgehog: the fake model answers at http://{link.address[0]}:{link.address[1]} (Ctrl-C ends it)")
        await asyncio.Event().wait()
