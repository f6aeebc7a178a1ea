"""A web service with Landscaper's endless loop: tools and continuations for as long as the model asks for them.

A message is answered by a chain of model calls with tools between them. Nothing limits the chain: the client's 60 s
start again with each call, while the front end's 90 s only shrink. Every exception ends in a canned text with HTTP
200, and the service does not learn that the front end has left. `agents/` says what each fix does.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web
from model import MAX_TOKENS, Model, ModelError, Reply, Timers
from units import Units

CLIENT_TIMEOUT_S = 60.0
LONGER_CLIENT_TIMEOUT_S = 120.0
TOTAL_BUDGET_S = 75.0
MAX_TOOL_ITERATIONS = 5
RESULT_CHARS = 4000
CANNED = "I'm sorry, I had trouble with that request. Please try again in a moment."
FIXES = {
    *("five-rounds", "budget-75", "cut-results", "client-timeout-120", "multi-row-insert"),
    *("streaming", "budget-per-call", "cancel-with-front-end", "say-so", "one-at-a-time"),
}


class Thread:
    """One conversation: what its user wrote and read, without tool rounds."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self._file = folder / f"thread-{re.sub(r'[^A-Za-z0-9]+', '-', name)}.jsonl"

    def add(self, role: str, text: str) -> None:
        lines = self._file.read_text() if self._file.exists() else ""
        new = self._file.with_suffix(".new")
        new.write_text(lines + json.dumps({"role": role, "content": text}) + "\n")
        new.replace(self._file)  # a full disk or a crash leaves the old one whole

    @property
    def messages(self) -> list[dict[str, Any]]:
        lines = self._file.read_text().splitlines()
        return [message for message in map(json.loads, lines) if message["content"]]


class Landscaper:
    def __init__(self, options: argparse.Namespace, model: Model, units: Units) -> None:
        self._time_scale: float = options.time_scale
        self._fixes: frozenset[str] = options.fixes
        self._model = model
        self._units = units
        self._busy: set[str] = set()

    async def respond(self, thread: Thread, text: str) -> web.Response:
        if "one-at-a-time" in self._fixes and thread.name in self._busy:
            return web.json_response({"error": "I am still working on your last message"}, status=409)
        self._busy.add(thread.name)
        try:
            return await self._answer(thread, text)
        finally:
            self._busy.discard(thread.name)

    async def _answer(self, thread: Thread, text: str) -> web.Response:
        thread.add("user", text)
        try:
            answer = await self._loop(thread.messages)
        except Exception as wrong:
            if "say-so" in self._fixes:
                return web.json_response({"error": str(wrong) or type(wrong).__name__}, status=500)
            answer = CANNED
        thread.add("assistant", answer)
        return web.json_response({"answer": answer})

    async def _loop(self, messages: list[dict[str, Any]]) -> str:
        timers = self._timers()
        reply = await self._model.create(messages, timers)
        began, iteration = time.monotonic(), 0
        while reply.stop_reason == "tool_use":
            iteration += 1
            if "five-rounds" in self._fixes and iteration > MAX_TOOL_ITERATIONS:
                break
            if "budget-75" in self._fixes and time.monotonic() - began > self._scaled(TOTAL_BUDGET_S):
                break
            results = [await self._use(tool_use) for tool_use in reply.tool_uses]
            messages = [
                *messages,
                {"role": "assistant", "content": reply.content},
                {"role": "user", "content": results},
            ]
            reply = await self._model.create(messages, timers)
        return self._words(reply)

    def _scaled(self, seconds: float) -> float:
        return seconds / self._time_scale

    def _timers(self) -> Timers:
        """The time limits of this message's calls; the budget starts when the message comes."""
        client_s = LONGER_CLIENT_TIMEOUT_S if "client-timeout-120" in self._fixes else CLIENT_TIMEOUT_S
        ends_at = time.monotonic() + self._scaled(TOTAL_BUDGET_S) if "budget-per-call" in self._fixes else None
        return Timers(self._scaled(client_s), ends_at)

    async def _use(self, tool_use: dict[str, Any]) -> dict[str, Any]:
        try:
            result = str(await self._units.update(int(tool_use["input"].get("count", 40))))
        except (TypeError, ValueError) as wrong:
            result = str({"success": False, "why": str(wrong)})
        if "cut-results" in self._fixes and len(result) > RESULT_CHARS:
            result = result[:RESULT_CHARS] + f"... [truncated, {len(result)} chars total]"
        return {"type": "tool_result", "tool_use_id": tool_use["id"], "content": result}

    def _words(self, reply: Reply) -> str:
        """What the user reads. After a `break` that may be the text beside a tool call, or no text."""
        if "say-so" not in self._fixes:
            return reply.text
        if reply.stop_reason == "tool_use":
            raise ModelError("stopped at a limit of my own with tool calls still to do; what was updated stays so")
        if reply.stop_reason == "max_tokens":
            raise ModelError(f"the model's reply was cut at {MAX_TOKENS} tokens")
        return reply.text


def application(options: argparse.Namespace) -> web.Application:
    options.session.mkdir(parents=True, exist_ok=True)
    units = Units(options.session, options.time_scale, "multi-row-insert" in options.fixes, options.store)
    landscaper = web.AppKey("landscaper", Landscaper)

    async def client(app: web.Application) -> AsyncIterator[None]:
        async with aiohttp.ClientSession() as http:
            model = Model(http, options.url, options.key, "streaming" in options.fixes, options.sdk_retries)
            app[landscaper] = Landscaper(options, model, units)
            yield

    async def health(_: web.Request) -> web.Response:
        return web.json_response({"ok": True})

    async def message(request: web.Request) -> web.Response:
        body = await request.json()
        return await request.app[landscaper].respond(Thread(options.session, body["session"]), body["text"])

    app = web.Application()
    app.cleanup_ctx.append(client)
    app.add_routes([web.get("/health", health), web.post("/message", message)])
    return app


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fixes", default="none", help="names, separated by commas, or none")
    parser.add_argument("--time-scale", type=float, default=1.0, help="every duration is divided by it")
    parser.add_argument("--session", type=Path, required=True)
    parser.add_argument("--url", required=True)
    parser.add_argument("--key", default="")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--sdk-retries", type=int, default=0, help="how often an SDK repeats a timed-out call")
    parser.add_argument("--store", default="", help="tcp://host:port of the database; empty: a file")
    options = parser.parse_args(argv)
    options.fixes = frozenset(options.fixes.split(",")) - {"none", ""}
    if options.fixes - FIXES:
        sys.exit(f"no such fix: {', '.join(sorted(options.fixes - FIXES))}")
    return options


def settings(options: argparse.Namespace) -> dict[str, Any]:
    cancels = "cancel-with-front-end" in options.fixes
    return {"handler_cancellation": cancels, "shutdown_timeout": 0.2, "access_log": None}


async def simulate(argv: Sequence[str]) -> None:
    """The same service on a running event loop, for virtual time."""
    options = arguments(argv)
    runner = web.AppRunner(application(options), **settings(options))
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", options.port).start()
        await asyncio.Event().wait()
    finally:
        await runner.cleanup()


def main() -> None:
    options = arguments()
    run = {"host": "127.0.0.1", "port": options.port, "print": lambda *_: None}
    web.run_app(application(options), **run, **settings(options))


if __name__ == "__main__":
    main()
