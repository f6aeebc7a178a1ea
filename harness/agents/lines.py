"""An agent that talks in lines on its stdin and stdout: one line is a message, others are its answer."""

import asyncio
import json
import re
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from wedgehog.harness.agents.context import AgentContext, Surroundings
from wedgehog.harness.agents.living import LivingSession, Said
from wedgehog.harness.agents.output_source import OutputSource, has, value_in
from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.agents.templates import expand_all
from wedgehog.harness.sandbox.arrivals import Arrivals
from wedgehog.harness.sandbox.owned import Owned, Tree

Sign = str | Mapping[str, Any]
"""How a line is recognised: by a pattern, or by fields of its JSON."""


class HeardLines:
    """The lines of one turn as they arrive; the last one may have no end yet, as a prompt has none."""

    def __init__(self) -> None:
        self._arrived = Arrivals()
        self._more = asyncio.Event()
        self._searched = 0
        self._errs = False

    def feed_error(self, chunk: bytes) -> None:
        """Take what was read from stderr: on a terminal, a line that it ends is no longer open on stdout either."""
        self._errs = self._errs or b"\n" in chunk
        self._more.set()

    def feed(self, chunk: bytes) -> None:
        """Take what was read."""
        self._arrived.add(chunk)
        self._more.set()

    def forget(self) -> None:
        """Begin a turn."""
        self._arrived, self._searched, self._errs = Arrivals(), 0, False

    @property
    def lines(self) -> list[str]:
        """All lines, with the unfinished one; without that, an empty last one."""
        return self._arrived.lines

    def line_s(self, index: int) -> float | None:
        """When this line had come, by the time of the event loop."""
        return self._arrived.line_s(index)

    async def until(self, sign: Sign) -> None:
        """Return when a line has come that the sign recognises."""
        while self.place_of(sign) is None and not self._prompts_behind_words(sign):
            self._more.clear()
            await self._more.wait()

    def _prompts_behind_words(self, sign: Sign) -> bool:
        """Whether the prompt `^> $` stands behind a broken answer on its line, and the error on stderr between them."""
        if not self._errs or not isinstance(sign, str) or sign[:1] != "^" or sign[-1:] != "$":
            return False
        return re.search(sign[1:], self.lines[-1]) is not None

    async def each(self, sign: Sign) -> AsyncIterator[str]:
        """Each line that the sign recognises, as soon as it does; a prompt has no line end yet."""
        index = 0
        while True:
            while index < len(lines := self.lines):
                if _is(lines[index], sign):
                    yield lines[index]
                elif index == len(lines) - 1:
                    break
                index += 1
            self._more.clear()
            await self._more.wait()

    def place_of(self, sign: Sign) -> int | None:
        """The index of the first line that the sign recognises; each whole line is looked at once."""
        lines = self.lines
        found = next((index for index in range(self._searched, len(lines)) if _is(lines[index], sign)), None)
        self._searched = found if found is not None else len(lines) - 1
        return found


def _filled(answer: Any, line: str) -> Any:
    """An answer, with each `jsonl:PATH` replaced by the value that stands there in the line that asks."""
    if isinstance(answer, dict):
        return {key: _filled(value, line) for key, value in answer.items()}
    is_path = isinstance(answer, str) and answer.startswith("jsonl:")
    return value_in(line, answer.removeprefix("jsonl:")) if is_path else answer


def _is(line: str, sign: Sign) -> bool:
    return re.search(sign, line) is not None if isinstance(sign, str) else has(line, sign)


class LinesSession(LivingSession):
    """Writes each message as a line, and reads lines until the one that ends the turn."""

    def __init__(self, spec: AgentSpec, context: AgentContext, surroundings: Surroundings, tree: Tree) -> None:
        assert spec.lines is not None  # noqa: S101  open_agent chose by it
        self._talks = spec.lines
        self._heard = HeardLines()
        super().__init__(spec, context, surroundings, tree)

    @property
    def _speaks_protocol(self) -> bool:
        return not isinstance(self._talks.done, str)  # (a prompt, as a person reads it in a terminal)

    def _lines(self) -> tuple[Sequence[str], Sequence[str] | None]:
        return self._talks.start, self._talks.resume

    async def _launched(self, argv: list[str]) -> Owned:
        owned = await self._start(argv, talks=True)
        self._heard = HeardLines()
        owned.stdout.listen(self._heard.feed)
        owned.stderr.listen(self._heard.feed_error)
        return owned

    async def _prepare(self, *, first: bool) -> None:
        if self._talks.ready is not None:
            await self._heard.until(self._talks.ready)

    async def _exchange(self, text: str) -> None:
        self._heard.forget()
        self._write(self._talks.send, text)
        answering = asyncio.create_task(self._answer())
        try:
            await self._heard.until(self._talks.done)
        finally:
            answering.cancel()

    async def _answer(self) -> None:
        """Say to each request for permission what the user of this turn says."""
        asks = self._talks.asks
        if asks is not None:
            async for line in self._heard.each(asks.shows):
                if chosen := self._choose(tuple(asks.answers), line):
                    self._write(_filled(asks.answers[chosen], line), "")

    def _write(self, line: Any, text: str) -> None:
        """Write one line: text as it is, but without line ends, other values as JSON."""
        filled = expand_all(line, {**self._around.values, "message": text})
        words = " ".join(filled.splitlines()) if isinstance(filled, str) else json.dumps(filled, ensure_ascii=False)
        if self.leader is not None:
            self.leader.stdin.write(words.encode() + b"\n")

    def _said(self) -> Said:
        lines, talks = self._heard.lines[: self._end], self._talks
        answer = self._read(talks.answer, talks.answer_from, lines)
        return Said(answer, self._read(talks.error, talks.error_from, lines))

    @property
    def _end(self) -> int | None:
        """Where the prompt stands that ends the turn: it says nothing else, and a JSON line may hold the answer."""
        if not isinstance(self._talks.done, str) or (place := self._heard.place_of(self._talks.done)) is None:
            return None
        return None if self._heard.lines[place].lstrip().startswith("{") else place

    def _answered_s(self, owned: Owned, answer: str) -> float | None:
        source = OutputSource.parse(self._talks.answer)
        if source.kind == "stderr":
            return owned.arrived()[1].last_s
        only = self._talks.answer_from
        mine = [line if only is None or has(line, only) else "" for line in self._heard.lines[: self._end]]
        last = source.last_line(mine)
        return None if last is None else self._heard.line_s(last)

    def _read(self, place: str, only: Mapping[str, Any] | None, lines: Sequence[str]) -> str:
        source = OutputSource.parse(place)
        if source.kind == "stderr":
            return self._owned.output()[1] if self._owned is not None else ""
        return source.within("\n".join(line for line in lines if only is None or has(line, only)))

    async def _abort(self) -> None:
        how, leader = self._talks.abort, self.leader
        if leader is None:
            return
        if isinstance(how, dict):
            self._write(how, "")
        elif how == "EOF":
            leader.stdin.close()
        else:
            leader.send_signal(signal.Signals[how])
