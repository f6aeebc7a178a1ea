"""Delivers each message to an agent by HTTP, again and again until the agent answers with a status of 2xx.

```
chat service ─▶ POST /telegram {"update_id": 8, "message": {"chat": {"id": 7}, "text": "Hello"}}      agent
chat service ◀─ 200, empty, or one request: {"method": "sendMessage", "chat_id": 7, "text": "Hi!"}
```
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal

import aiohttp

from wedgehog.harness.record.clock import Clock
from wedgehog.harness.services.chat.api import ChatApi

Delivered = Literal["taken", "too slow", "not taken"]


class Webhook:
    """Delivers each message in a task of its own."""

    def __init__(
        self,
        clock: Clock,
        time_scale: float,
        api: ChatApi,
        call: Callable[[Mapping[str, Any]], Awaitable[None]],
        again: Callable[[str], None],
    ) -> None:
        """`call` does what the response to a message asks for; times are divided by `time_scale`.

        `again` is called with a message that comes again to an agent that was too slow to take it.
        """
        self._clock, self._scale, self._api, self._call, self._again = clock, time_scale, api, call, again
        self._tasks: set[asyncio.Task[None]] = set()
        self.url = ""
        """Empty: the agent polls."""

    def deliver(self, event: Mapping[str, Any], text: str, begins: Callable[[], None]) -> None:
        """Deliver a message until the agent takes it; `begins` is called before each try."""
        task = asyncio.create_task(self._until_taken(event, text, begins))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _until_taken(self, event: Mapping[str, Any], text: str, begins: Callable[[], None]) -> None:
        begins()
        delivered = await self.once(event)
        for retry, pause_s in enumerate(self._api.pauses_s(), 1):
            if delivered == "taken":
                return
            await self._clock.sleep(pause_s / self._scale)
            begins()
            if delivered == "too slow":
                self._again(text)
            delivered = await self.once(event, retry)

    async def once(self, event: Mapping[str, Any], retry: int = 0) -> Delivered:
        """Deliver a message once."""
        patience = aiohttp.ClientTimeout(total=self._api.patience_s / self._scale)
        body = json.dumps(event).encode()
        headers = {"Content-Type": "application/json", **self._api.event_headers(body, retry)}
        try:
            async with (
                aiohttp.ClientSession(timeout=patience) as client,
                client.post(self.url, data=body, headers=headers) as response,
            ):
                taken, text = response.status < 300, await response.text()
        except TimeoutError:
            return "too slow"
        except (aiohttp.ClientError, OSError):
            return "not taken"
        if taken and (asks := _request_in(text)):
            await self._call(asks)
        return "taken" if taken else "not taken"

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
