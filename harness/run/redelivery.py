"""A front end that got no reply in time delivers the same message once more, as webhooks do."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

from wedgehog.harness.agents.base import Session
from wedgehog.harness.record.clock import Clock
from wedgehog.harness.record.events.turn import DeliveredAgain
from wedgehog.harness.record.history import History
from wedgehog.harness.run.messages import UserMessage

QUIET_S = 1.0
"""An agent that begins to work on it again asks the model within this time."""
LONGEST_S = 10.0
"""The turn waits at most so long for the end of that work."""


@contextlib.asynccontextmanager
async def delivered_again(
    session: Session, history: History, clock: Clock, message: UserMessage, busy: Callable[[], bool]
) -> AsyncIterator[None]:
    """Deliver the message of the turn in the block again, if the scenario says so; `busy`: a request is open.

    The block's end waits for what the agent makes of it.
    """
    if message.again_s is None:
        yield
        return
    again = asyncio.create_task(_deliver(session, history, clock, message, message.again_s))
    try:
        yield
        await asyncio.wait({again}, timeout=message.again_s + LONGEST_S)
        await _until_quiet(clock, busy)
    finally:
        again.cancel()
        await asyncio.wait({again})


async def _deliver(session: Session, history: History, clock: Clock, message: UserMessage, after_s: float) -> None:
    await clock.sleep(after_s)
    history.add_unless_sealed(DeliveredAgain(turn=message.number, other_event=message.as_other_event))
    await session.deliver_again(message.words, other_event=message.as_other_event)


async def _until_quiet(clock: Clock, busy: Callable[[], bool]) -> None:
    began_s = quiet_s = clock.now()
    while clock.now() - quiet_s < QUIET_S and clock.now() - began_s < LONGEST_S:
        await clock.sleep(QUIET_S / 10)
        if busy():
            quiet_s = clock.now()
