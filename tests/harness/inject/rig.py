"""An injector between a link that takes notes and calls that a test makes up."""

import asyncio
from typing import Any

from wedgehog.fake_llm.observer import Conn, Point
from wedgehog.fake_llm.script.position import CallPosition
from wedgehog.harness.faults.reply_fault import Context
from wedgehog.harness.inject.injector import Injector
from wedgehog.harness.inject.limited_reply import PartialDelivery
from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.record.history import History
from wedgehog.harness.scenario.fault_config import FaultConfig
from wedgehog.harness.scenario.fault_plan import FaultPlan

HEAD, ENDS, BODY = 100, (50, 120, 200), 200
PEER = ("127.0.0.1", 4000)


class Rig:
    """An injector between a link that takes notes and calls that we make up."""

    def __init__(self, clock: Any, link: Any, faults: tuple[dict[str, Any], ...]) -> None:
        self.clock, self.link = clock, link
        self.history = History(clock)
        plan = FaultPlan(tuple(self.planned(words) for words in faults))
        self.delivered: list[tuple[int, PartialDelivery | None]] = []
        links = {"llm": link, "channel": link, "tool:web": link}
        self.injector = Injector(
            plan, links, self.history, clock, delivered=lambda call, cut: self.delivered.append((call, cut))
        )
        self.calls = 0

    planned = staticmethod(lambda words: FaultConfig.model_validate(words).planned())

    @property
    def strikes(self) -> list[Any]:
        return self.link.strikes

    @property
    def fired(self) -> list[FaultFired]:
        return list(self.history.of(FaultFired))

    def arrives(
        self, turn: int = 1, step: int = 1, attempt: int = 1, background: str = "", model: str = "m", side: Any = None
    ) -> int:
        """A request for the model; its number."""
        self.calls += 1
        background = background or (side.name if side is not None else "")
        self.injector.arrived(self.calls, CallPosition(turn, step, attempt, background, side=side), model)
        return self.calls

    async def ask(self, call: int, at: int = -1, conn: int = 1, carried: int = 0, stream: bool = True) -> Any:
        """The gate is asked about a reply."""
        peer = Conn(conn, (PEER[0], PEER[1] + conn))
        async with asyncio.timeout(10):  # a gate that stays closed fails the test
            return await self.injector.gate(Point(call, peer, carried, HEAD, ENDS if stream else (), BODY, at, stream))

    async def call(self, conn: int = 1, carried: int = 0, **place: Any) -> Any:
        """A request whose reply is about to be written: the further stops."""
        return await self.ask(self.arrives(**place), conn=conn, carried=carried)

    def answer(self, call: int, answer: Any) -> Any:
        """The reply as the plan leaves it."""
        context = Context(None, 1000, self.clock.wall())
        altered = self.injector.alter(call, answer, context, on_script=True)
        return self.injector.alter(call, altered, context, on_script=False)
