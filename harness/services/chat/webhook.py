"""Brings messages to an agent by HTTP, as Telegram does: again and again, until it answers one with a status of 2xx.

```
chat service ─▶ POST /telegram {"update_id": 8, "message": {"chat": {"id": 7}, "text": "Hello"}}      agent
chat service ◀─ 200, empty, or one request: {"method": "sendMessage", "chat_id": 7, "text": "Hi!"}
```

https://core.telegram.org/bots/api#setwebhook
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import aiohttp

from wedgehog.harness.record.clock import Clock

PATIENCE_S = 60.0
"""Without a response after this time a message is delivered again."""
LONGEST_PAUSE_S = 8.0


class Webhook:
    """Delivers each message in a task of its own."""

    def __init__(self, clock: Clock, time_scale: float, call: Callable[[Mapping[str, Any]], Awaitable[None]]) -> None:
        """`call` does what the response to a message asks for. Times are divided by `time_scale`."""
        self._clock, self._scale, self._call = clock, time_scale, call
        self._tasks: set[asyncio.Task[None]] = set()
        self.url = ""
        """Empty: the agent polls."""

    def deliver(self, update: Mapping[str, Any], begins: Callable[[], None]) -> None:
        """Deliver a message until the agent takes it; `begins` is called before each try."""
        task = asyncio.create_task(self._until_taken(update, begins))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _until_taken(self, update: Mapping[str, Any], begins: Callable[[], None]) -> None:
        pause_s = 1.0
        begins()
        while not await self.once(update):
            await self._clock.sleep(pause_s / self._scale)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
            begins()

    async def once(self, update: Mapping[str, Any]) -> bool:
        """Deliver a message once; whether the agent took it."""
        patience = aiohttp.ClientTimeout(total=PATIENCE_S / self._scale)
        try:
            async with (
                aiohttp.ClientSession(timeout=patience) as client,
                client.post(self.url, json=update) as response,
            ):
                taken, body = response.status < 300, await response.text()
        except (aiohttp.ClientError, OSError, TimeoutError):
            return False
        asks = _request_in(body) if taken else {}
        if asks:
            await self._call(asks)
        return taken

    async def close(self) -> None:
        """End all deliveries."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def _request_in(body: str) -> dict[str, Any]:
    """The request that a response holds; empty if it holds none."""
    try:
        found = json.loads(body or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) and isinstance(found.get("method"), str) else {}
