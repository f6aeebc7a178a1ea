"""aiohttp that writes the same bytes and knows nothing: `python serve_bare.py PORT`."""

import asyncio
import json
import sys

from aiohttp import web

WORDS = "abcd" * 50


def chunk(delta: dict[str, str], reason: str | None = None) -> bytes:
    """Write an event as long as the provider's."""
    told = {
        "id": "chatcmpl-" + "x" * 29,
        "object": "chat.completion.chunk",
        "created": 1735689600,
        "model": "m",
        "service_tier": "default",
        "system_fingerprint": "fp_0123456789",
        "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}],
    }
    return b"data: " + json.dumps(told, separators=(",", ":")).encode() + b"\n\n"


PIECES = [chunk({"content": WORDS[at : at + 4]}) for at in range(0, len(WORDS), 4)]
STREAM = [chunk({"role": "assistant", "content": ""}), *PIECES, chunk({}, "stop"), b"data: [DONE]\n\n"]
PLAIN = json.dumps({"id": "x" * 38, "choices": [{"message": {"role": "assistant", "content": "Hello there"}}]}).encode()


async def answer(request: web.Request) -> web.StreamResponse:
    """Read the request and write what it asks for, each event by itself."""
    asked = json.loads(await request.read())
    if not asked.get("stream"):
        return web.Response(body=PLAIN, content_type="application/json")
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    held = asked["messages"][-1]["content"] == "hold"
    for event in STREAM:
        await response.write(event)
        if held:
            await asyncio.sleep(600)
    await response.write_eof()
    return response


async def serve(port: int) -> None:
    """Serve until the process is ended."""
    app = web.Application()
    app.router.add_post("/v1/chat/completions", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    await asyncio.Event().wait()


asyncio.run(serve(int(sys.argv[1])))
