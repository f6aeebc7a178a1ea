"""The agent of `plantable.py` as a service: `plantable_service.py BUG URL SESSION PORT`.

A front end that goes away cancels its turn. One message is played at a time.
"""

import asyncio
import sys
from collections.abc import Sequence

import plantable
from aiohttp import web

STOPS_S = 1.0
"""How long a stop takes."""


def service(url: str, folder: str) -> web.Application:
    alone = asyncio.Lock()
    busy: list[str] = []
    """The messages that are being answered."""
    known: dict[str, asyncio.Future[str]] = {}
    """The answers by the ids of their messages."""
    dropped: set[str] = set()
    """Messages that were waiting when a turn failed or was stopped."""

    stopping: list[str] = []
    """The messages whose turns are being stopped."""

    async def answer(request: web.Request) -> web.Response:
        asked = await request.json()
        text, id_ = asked["text"], asked.get("id", "")
        if stopping and "refuses-while-it-stops" in plantable.BUGS:
            return web.json_response({"error": "Error: the session is busy"}, status=409)
        if stopping and "drops-while-it-stops" in plantable.BUGS:
            return web.json_response({"answer": ""})
        if id_ in known and "joins" in plantable.BUGS:
            return web.json_response({"answer": await known[id_]})
        if id_ in known and "forgets-ids" not in plantable.BUGS:
            return web.json_response({"status": "known"}, status=202)
        known[id_] = asyncio.get_running_loop().create_future()
        if busy and "stays-busy" in plantable.BUGS:
            return web.json_response({"error": "Error: the session is busy"}, status=409)
        busy.append(text)
        try:
            async with alone:
                if text in dropped:
                    return web.json_response({"answer": ""})
                said = await plantable.turn(url, folder, "-", text)
                known[id_].set_result(said)
                busy.remove(text)
                return web.json_response({"answer": said})
        except asyncio.CancelledError:
            dropped.update(it for it in busy if it != text and "drops-what-waits" in plantable.BUGS)
            stopping.append(text)
            await asyncio.sleep(STOPS_S)
            stopping.remove(text)
            raise
        except (plantable.FailedError, OSError, ValueError) as wrong:
            busy.remove(text)
            dropped.update(busy if "drops-what-waits" in plantable.BUGS else ())
            return web.json_response({"error": f"Error: {wrong}"}, status=502)

    async def ready(request: web.Request) -> web.Response:
        return web.Response(text="ready")

    app = web.Application()
    app.add_routes([web.post("/message", answer), web.get("/ready", ready)])
    return app


def main(argv: Sequence[str]) -> None:
    bugs, url, folder, port = argv
    plantable.BUGS.update(bugs.split(","))
    if "hasty" in plantable.BUGS:
        plantable.IDLE_S = 1
    web.run_app(service(url, folder), host="127.0.0.1", port=int(port), handler_cancellation=True, print=None)


if __name__ == "__main__":
    main(sys.argv[1:])
