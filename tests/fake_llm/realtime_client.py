"""What a client of the Realtime API does, by the official SDK."""

import asyncio
from typing import Any

PATIENCE_S = 20


async def heard(connection: Any) -> Any:
    """The next event, whose fields are all of the types that the SDK declares for it."""
    async with asyncio.timeout(PATIENCE_S):
        event = await connection.recv()
    type(event).model_validate(event.model_dump())
    return event


async def says(connection: Any, text: str = "Hello") -> None:
    """The user's words enter the conversation."""
    message = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
    await adds(connection, message)


async def adds(connection: Any, item: Any) -> None:
    """An item enters the conversation."""
    await connection.conversation.item.create(item=item)
    told = [(await heard(connection)).type for _ in range(2)]
    assert told == ["conversation.item.added", "conversation.item.done"]


async def answered(connection: Any, **asked: Any) -> list[Any]:
    """The events of one response, up to its end."""
    await connection.response.create(**asked)
    events = [await heard(connection)]
    while events[-1].type not in ("response.done", "error"):
        events.append(await heard(connection))
    return events
