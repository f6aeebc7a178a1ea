"""Specimen of the incident *dangling-call*: a coding agent that cleans up after an abort, but not after a timeout.

One message per process, where Ctrl-C is the user's abort (exit code 130), or a service whose handler is cancelled when
its client hangs up:

    python specimen.py --fixes none --time-scale 45 --session DIR --url http://127.0.0.1:8000 --key K "Build it"
    python specimen.py … --serve 8001           POST /message {"text": …} gives {"answer": …}, or 500 {"error": …}

The history is saved at every end of a turn. Each fix is one place where an exception is caught. ``--time-scale``
divides ``--timeout``; 0 means no timeout.
"""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

import aiohttp
from agent import FIXES, Agent, GlobalRequestTimeoutError, UserAbortError
from aiohttp import web
from history import History
from provider import Provider, ProviderError

FAILURES = (UserAbortError, GlobalRequestTimeoutError, ProviderError, aiohttp.ClientError)
GLOBAL_TIMEOUT_S = 90.0


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="specimen of the incident dangling-call")
    parser.add_argument("--fixes", default="none", help=f"joined by commas: {', '.join(FIXES)}")
    parser.add_argument("--time-scale", type=float, default=1.0)
    parser.add_argument("--timeout", type=float, default=GLOBAL_TIMEOUT_S, help="of a whole turn, in seconds")
    parser.add_argument("--session", type=Path, required=True)
    parser.add_argument("--url", required=True)
    parser.add_argument("--key", required=True)
    parser.add_argument("--serve", type=int, metavar="PORT")
    parser.add_argument("message", nargs="?", default="")
    options = parser.parse_args(argv)
    options.fixes = frozenset(options.fixes.split(",")) - {"none"}
    if unknown := options.fixes.difference(FIXES):
        parser.error(f"no such fix: {', '.join(sorted(unknown))}")
    return options


async def turn(options: argparse.Namespace, text: str, *, owns_terminal: bool) -> str:
    """Load, play, save; also if the turn fails or is cancelled."""
    history = History.load(options.session)
    agent = Agent(
        Provider(options.url, options.key),
        history,
        options.fixes,
        timeout_s=options.timeout / options.time_scale or None,
    )
    if owns_terminal:
        agent.abort_on_interrupt()
    try:
        return await agent.run(text)
    finally:
        history.save(options.session)


async def command(options: argparse.Namespace) -> int:
    """One message, from the command line."""
    try:
        print(await turn(options, options.message, owns_terminal=True))
    except FAILURES as error:
        print(describe(error), file=sys.stderr)
        return 130 if isinstance(error, UserAbortError) else 1
    return 0


def service(options: argparse.Namespace) -> web.Application:
    """The same turns over HTTP, one at a time."""
    one_at_a_time = asyncio.Lock()

    async def message(request: web.Request) -> web.Response:
        text = (await request.json())["text"]
        async with one_at_a_time:
            try:
                return web.json_response({"answer": await turn(options, text, owns_terminal=False)})
            except FAILURES as error:
                return web.json_response({"error": describe(error)}, status=500)

    async def health(_request: web.Request) -> web.Response:
        return web.json_response({"ok": True})

    app = web.Application()
    app.add_routes([web.post("/message", message), web.get("/health", health)])
    return app


async def simulate(argv: Sequence[str]) -> int:
    """The same on a running event loop, for virtual time."""
    options = parse(argv)
    if options.serve is None:
        return await command(options)
    runner = web.AppRunner(service(options), handler_cancellation=True, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", options.serve).start()
        await asyncio.Event().wait()
    finally:
        await runner.cleanup()
    return 0


def describe(error: Exception) -> str:
    """The error in the form that the user reads."""
    return f"{type(error).__name__}: {error}"


def main(argv: Sequence[str]) -> int:
    """One turn, or a service until an interrupt."""
    options = parse(argv)
    if options.serve is None:
        return asyncio.run(command(options))
    web.run_app(
        service(options), host="127.0.0.1", port=options.serve, handler_cancellation=True, print=None, access_log=None
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
