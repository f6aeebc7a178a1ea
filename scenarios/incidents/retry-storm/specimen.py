"""An agent with OpenClaw's retry storm: the run loop retries after an idle timeout without a limit of its own.

A run (one heartbeat or message) is a loop of attempts. Each attempt has its own stream wrapper, with an idle timer
that only events of the model reset. After an idle timeout the loop tries the next candidate, and then starts again
with the first. The fixes say where the streak of idle timeouts is counted, what ends the streak, and how many attempts
a run may make; `agents/anthropic.yaml` lists them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NoReturn

import aiohttp
from wires import WIRES, Draft, ProviderError, Wire, next_event, parsed

MAX_RUN_LOOP_ITERATIONS = 160
BREAKER_CAP = 5
REPLY_CAP = 10  # six attempts that made progress are not too many; thirteen paid calls for one reply are
TOOL_ROUNDS = 40  # has no part in the incident: a model that only asks for tools must not go on for ever
TOTAL_BUDGET = 8  # the breaker's five, and three more: any total is a guess
HEADERS_S = 5.0  # not the idle timer: a slow start on a busy machine is no stalled provider
EXEC_S = 30.0
FIXES = {
    *("wrapper-counter", "outer-counter", "reset-on-output", "reset-on-progress"),
    *("reply-budget", "total-budget"),
}


class IdleTimeoutError(Exception):
    """No event of the model came within the idle timer."""

    def __init__(self, draft: Draft) -> None:
        super().__init__("LLM idle timeout")
        self.draft = draft


class BreakerOpenError(Exception):
    """The loop refuses to go on; not the same as a timeout of one attempt."""


class Streak:
    """Idle timeouts in a row, for as long as its owner exists."""

    def __init__(self, cap: int | None, ends_with: str = "a reset") -> None:
        self.cap = cap
        self.ends_with = ends_with
        self.length = 0

    def check(self) -> None:
        if self.cap is not None and self.length >= self.cap:
            raise BreakerOpenError(f"idle-timeout breaker: {self.length} in a row without {self.ends_with}, giving up")


@dataclass(frozen=True)
class Options:
    wire: Wire
    url: str
    key: str
    candidates: int
    loop_per_candidate: bool
    idle_s: float
    fixes: frozenset[str]
    shell: bool = True

    def body(self, model: str, messages: list[dict[str, Any]]) -> dict[str, Any]:
        body = self.wire.body(model, messages)
        return body if self.shell else {key: value for key, value in body.items() if key != "tools"}


class Route:
    """The next candidate: m1 … mN and again from m1, or a whole run loop for each candidate."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self.idle_timeouts = 0
        self.limit = MAX_RUN_LOOP_ITERATIONS * (options.candidates if options.loop_per_candidate else 1)

    @property
    def model(self) -> str:
        if self._options.loop_per_candidate:
            return f"m{1 + self.idle_timeouts // MAX_RUN_LOOP_ITERATIONS}"
        return f"m{1 + self.idle_timeouts % self._options.candidates}"


async def explanation(reply: aiohttp.ClientResponse) -> str:
    """The body of an error; empty if it does not come."""
    try:
        return (await asyncio.wait_for(reply.text(), HEADERS_S))[:200]
    except TimeoutError:
        return ""


class Attempt:
    """One call of the model, with a new idle-timeout wrapper around its stream."""

    def __init__(self, options: Options, http: aiohttp.ClientSession) -> None:
        self._options = options
        self._http = http
        self._streak = Streak(BREAKER_CAP if "wrapper-counter" in options.fixes else None)

    async def run(self, model: str, messages: list[dict[str, Any]]) -> Draft:
        wire, draft = self._options.wire, Draft()
        try:
            async with asyncio.timeout(HEADERS_S):
                reply = await self._http.post(
                    self._options.url + wire.path,
                    headers=wire.headers(self._options.key),
                    json=self._options.body(model, messages),
                )
        except TimeoutError:
            raise IdleTimeoutError(draft) from None
        async with reply:  # an early exit closes the socket
            if reply.status >= 400:
                raise ProviderError(f"HTTP {reply.status}: {await explanation(reply)}")
            await self._read(draft, reply.content)
        return draft

    async def _read(self, draft: Draft, body: aiohttp.StreamReader) -> None:
        while not draft.done:
            coming = asyncio.create_task(next_event(body))
            # `wait`, not `wait_for`: an event that arrived while we had no processor is not a timeout.
            if not (await asyncio.wait({coming}, timeout=self._options.idle_s))[0]:
                coming.cancel()
                self._timed_out(draft)
            event = coming.result()
            if event is None:
                raise ProviderError("the stream ended before the reply did")
            self._options.wire.read(draft, event)
            self._streak.length = 0

    def _timed_out(self, draft: Draft) -> NoReturn:
        self._streak.length += 1
        self._streak.check()
        raise IdleTimeoutError(draft)


class Session:
    """The conversation in `session.jsonl`, and a line for each attempt in `attempts.jsonl`."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file, self._books = folder / "session.jsonl", folder / "attempts.jsonl"
        lines = self._file.read_text().splitlines() if self._file.exists() else []
        self.messages: list[dict[str, Any]] = [json.loads(line) for line in lines]

    def add(self, *messages: dict[str, Any]) -> None:
        self.messages.extend(messages)
        new = self._file.with_suffix(".new")
        new.write_text("".join(json.dumps(message) + "\n" for message in self.messages))
        new.replace(self._file)  # a full disk or a crash leaves the old one whole

    def book(self, attempt: int, model: str, draft: Draft, ended: str) -> None:
        line = {"attempt": attempt, "model": model, "ended": ended}
        with self._books.open("a") as file:
            file.write(json.dumps(line | {"input_tokens": draft.input_tokens, "output_tokens": draft.output}) + "\n")


async def run_command(arguments: str) -> str:
    """The output of the command, or why there is none."""
    command = parsed(arguments).get("command")
    if not isinstance(command, str):
        return f'not run: {arguments!r} is not {{"command": …}}'
    shell = await asyncio.create_subprocess_shell(
        command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        out, _ = await asyncio.wait_for(shell.communicate(), EXEC_S)
    except TimeoutError:
        shell.kill()
        return f"no result after {EXEC_S:.0f} s"
    return out.decode(errors="replace") or f"exit code {shell.returncode}"


class Run:
    """The outer run loop: from a prompt to its answer, over attempts, candidates and tools."""

    def __init__(self, options: Options, http: aiohttp.ClientSession, session: Session) -> None:
        self._options = options
        self._http = http
        self._session = session
        self._attempts = 0
        self._rounds = 0
        self._route = Route(options)
        breaker = "outer-counter" in options.fixes
        self._streak = Streak(BREAKER_CAP if breaker else None)
        self._of_this_reply = Streak(
            REPLY_CAP if breaker and "reply-budget" in options.fixes else None, "a whole reply"
        )
        self._budget = TOTAL_BUDGET if "total-budget" in options.fixes else None

    async def answer(self) -> str:
        while self._attempts < self._route.limit:
            self._streak.check()
            self._of_this_reply.check()
            if self._attempts == self._budget:
                raise BreakerOpenError(f"attempt budget: {self._budget} attempts in one run, not trying again")
            self._attempts += 1
            draft = await self._attempt()
            if draft is None:
                continue
            if not draft.calls:
                if draft.text:
                    self._session.add({"role": "assistant", "text": draft.text})
                return draft.text
            await self._use_tools(draft)
        raise ProviderError(f"the run loop gave up after {self._attempts} attempts: LLM idle timeout")

    async def _attempt(self) -> Draft | None:
        model = self._route.model
        try:
            draft = await Attempt(self._options, self._http).run(model, self._session.messages)
        except IdleTimeoutError as timeout:
            self._session.book(self._attempts, model, timeout.draft, "idle timeout")
            self._route.idle_timeouts += 1
            self._streak.length = 0 if self._was_alive(timeout.draft) else self._streak.length + 1
            self._of_this_reply.length += 1
            return None
        self._session.book(self._attempts, model, draft, "finished")
        self._streak.length = self._of_this_reply.length = 0
        return draft

    def _was_alive(self, draft: Draft) -> bool:
        by_output = "reset-on-output" in self._options.fixes and draft.output > 0
        by_progress = "reset-on-progress" in self._options.fixes and draft.finished_blocks > 0
        return by_output or by_progress

    async def _use_tools(self, draft: Draft) -> None:
        self._rounds += 1
        if self._rounds > TOOL_ROUNDS:
            raise ProviderError(f"no answer after {TOOL_ROUNDS} rounds of tools")
        results = [{"id": call.id, "text": await run_command(call.arguments)} for call in draft.calls]
        calls = [asdict(call) for call in draft.calls]
        self._session.add(
            {"role": "assistant", "text": draft.text, "calls": calls}, {"role": "tool", "results": results}
        )


async def respond(options: Options, session: Session, prompt: str) -> str:
    session.add({"role": "user", "text": prompt})
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None)) as http:
        return await Run(options, http, session).answer()


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fixes", default="none", help="names, separated by commas, or none")
    parser.add_argument("--session", type=Path, required=True)
    parser.add_argument("--url", required=True)
    parser.add_argument("--key", default="")
    parser.add_argument("--wire", choices=WIRES, default="anthropic")
    parser.add_argument("--candidates", type=int, default=5)
    parser.add_argument("--loop-per-candidate", action="store_true")
    parser.add_argument("--idle-ms", type=float, default=50.0, help="never scaled")
    parser.add_argument("--heartbeat", action="store_true", help="the message comes from the agent's own timer")
    parser.add_argument("message")
    return parser.parse_args(argv)


async def run(argv: Sequence[str] | None, shell: bool) -> int:
    args = arguments(argv)
    fixes = frozenset(args.fixes.split(",")) - {"none", ""}
    if fixes - FIXES:
        sys.exit(f"no such fix: {', '.join(sorted(fixes - FIXES))}")
    options = Options(
        WIRES[args.wire],
        args.url,
        args.key,
        args.candidates,
        args.loop_per_candidate,
        args.idle_ms / 1000,
        fixes,
        shell,
    )
    prompt = f"{args.message} (heartbeat: do what is due)" if args.heartbeat else args.message
    try:
        print(await respond(options, Session(args.session), prompt))
    except (BreakerOpenError, ProviderError, aiohttp.ClientError) as wrong:
        print(f"error: {wrong}", file=sys.stderr)
        return 1
    except asyncio.CancelledError:
        print("interrupted", file=sys.stderr)
        return 130
    return 0


async def simulate(argv: Sequence[str]) -> int:
    """The same on a running event loop, for virtual time; without its shell, which is a process."""
    return await run(argv, shell=False)


def main() -> int:
    return asyncio.run(run(None, shell=True))


if __name__ == "__main__":
    sys.exit(main())
