"""An agent with a screen and a keyboard: it runs in a terminal, and what stands on its screen is its answer."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import dropwhile
from typing import Any, cast

import pyte

from wedgehog.harness.agents.base import Outcome
from wedgehog.harness.agents.context import AgentContext, Surroundings
from wedgehog.harness.agents.living import LivingSession, Said
from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.record.error_words import masked
from wedgehog.harness.sandbox.owned import Owned, Tree
from wedgehog.harness.sandbox.terminal import as_controlling, open_terminal, press

POLL_S = 0.05
TYPED_S = 0.2
"""The pause between the words and the key that sends them: many programs take text and key together as pasted text."""
REACTS_S = 2.0
"""After this time an agent has taken an answer: a request that it shows later, on another screen, is a new one."""
SCROLLED_LINES = 2_000
"""The number of lines that have left the screen at the top and can still be read."""

_UNKNOWN = re.compile(
    rb"\x1b[P_^X][^\x1b\x07]*(?:\x1b\\|\x07)"  # strings for the terminal: graphics, questions for its abilities
    rb"|\x1b\[[<=>][0-9;:]*[ -/]*[@-~]"  # keyboard protocols
    rb"|\x1b\[\?[0-9;]*[mnu]|\x1b\[[0-9;?]*[ -/]+[@-~]|\x1b\[[0-9;]*:[0-9;:]*m|\x1b\[3J"
)
"""What modern programs write and pyte shows as text, or cannot read; none of it draws a character."""
_UNFINISHED = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*|[P_^X\]][^\x07\x1b]*\x1b?)?\Z")
"""The beginning of such a sequence at the end of a chunk."""


class Screen:
    """What a terminal shows, and what it answers by itself."""

    def __init__(self, columns: int, rows: int) -> None:
        self._columns, self._typed, self._rest = columns, b"", b""
        self._screen = cast("Any", pyte.HistoryScreen(columns, rows, history=SCROLLED_LINES, ratio=0.5))
        self._screen.write_process_input = self._answer
        self._stream = pyte.ByteStream(self._screen)
        self._shown: list[str] | None = None

    def feed(self, chunk: bytes) -> bytes:
        """Draw what the program wrote; what the terminal answers, such as where the cursor is."""
        data = self._rest + chunk
        unfinished = _UNFINISHED.search(data)
        end = unfinished.start() if unfinished else len(data)
        self._rest = data[end:]
        self._stream.feed(_UNKNOWN.sub(b"", data[:end]))
        self._shown = None
        typed, self._typed = self._typed, b""
        return typed

    def _answer(self, data: str) -> None:
        self._typed += data.encode()

    @property
    def shown(self) -> list[str]:
        """The lines on the screen. Kept until more is written: to put them together takes milliseconds."""
        if self._shown is None:
            self._shown = [line.rstrip() for line in self._screen.display]
        return self._shown

    @property
    def scrolled(self) -> list[str]:
        """The lines that have left it at the top."""
        return ["".join(row[x].data for x in range(self._columns)).rstrip() for row in self._screen.history.top]


class TuiSession(LivingSession):
    """Types each message, and reads the screen once it stands still and shows that the agent waits."""

    def __init__(self, spec: AgentSpec, context: AgentContext, surroundings: Surroundings, tree: Tree) -> None:
        assert spec.tui is not None  # noqa: S101  open_agent chose by it
        self._talks = spec.tui
        self._screen = Screen(self._talks.columns, self._talks.rows)
        self._terminal = -1
        self._drawn: list[str] = []
        self._changed_s = 0.0
        """When the words on the screen changed."""
        self._first_seen: dict[str, float] = {}
        """When the words of each line were first on the screen in this turn, by the time of the event loop."""
        self._looked_s: float | None = None
        """When the output came that was on the screen at the last look."""
        self._answered: tuple[float, list[str]] | None = None
        """When the request for permission on the screen was answered, and how the screen looked then."""
        self._message = ""
        self._markers: set[str] = set()
        """The first words of all messages."""
        self._before: list[str] = []
        self._idle: frozenset[str] | None = None
        """The lines of the screen before the first message: a title, a prompt, a status line."""
        super().__init__(spec, context, surroundings, tree)
        env = {"TERM": "xterm-256color", **{k: v for k, v in self._around.env.items() if k != "TERM" or k in spec.env}}
        self._around = Surroundings(self._around.values, env, self._around.mark)

    def _lines(self) -> tuple[Sequence[str], Sequence[str] | None]:
        return self._talks.start, self._talks.resume

    async def _launched(self, argv: list[str]) -> Owned:
        ours, its = open_terminal(self._talks.columns, self._talks.rows)
        owned = await self._start(as_controlling(argv), terminal=(ours, its))
        self._screen = Screen(self._talks.columns, self._talks.rows)
        self._terminal = ours
        owned.stdout.listen(self._feed)
        return owned

    def _feed(self, chunk: bytes) -> None:
        if typed := self._screen.feed(chunk):
            press(self._terminal, typed)

    # ---- a turn

    async def _prepare(self, *, first: bool) -> None:
        await self._stands_still()
        if self._idle is None:
            self._idle = frozenset(map(masked, self._screen.shown))

    async def _exchange(self, text: str) -> None:
        self._message, self._before, self._first_seen = " ".join(text.splitlines()), self._seen, {}
        self._markers.update(self._message.split(maxsplit=1)[:1])
        await self._type(self._message)
        await self._context.clock.sleep(TYPED_S)
        await self._type(self._talks.enter)
        self._changed_s = self._context.clock.now()
        await self._stands_still()

    async def _type(self, keys: str) -> None:
        left = keys.encode()
        while left:
            left = left[press(self._terminal, left) :]
            if left:
                await self._context.clock.sleep(POLL_S)

    async def _stands_still(self) -> None:
        clock = self._context.clock
        while not (self._context.could_work_s(self._stands_since(clock.now())) >= self._talks.quiet_s and self._waits):
            self._look()
            await self._answer()
            await clock.sleep(POLL_S)

    def _stands_since(self, now: float) -> float:
        """When its words changed. A cursor that blinks is drawn again and again, and changes none."""
        if self._drawn != self._screen.shown:
            self._drawn, self._changed_s = self._screen.shown, now
        return self._changed_s

    async def _answer(self) -> None:
        """Press what the user of this turn says to a request for permission, once for each request."""
        asks, shown = self._talks.asks, self._screen.shown
        if asks is None or not _is_in(cast("str", asks.shows), shown):
            self._answered = None
            return
        now = self._context.clock.now()
        if self._answered is not None and (shown == self._answered[1] or now < self._answered[0] + REACTS_S):
            return
        self._answered = now, shown
        if chosen := self._choose(tuple(asks.answers), ""):
            await self._type(asks.answers[chosen])

    def _look(self) -> None:
        """Note which lines are new on the screen."""
        changed_s = self._owned.arrived()[0].last_s if self._owned is not None else None
        if changed_s is None or changed_s == self._looked_s:
            return
        self._looked_s = changed_s
        for line in self._screen.shown:
            self._first_seen.setdefault(_words(line), changed_s)

    @property
    def _waits(self) -> bool:
        """Whether the screen shows that the agent waits for a message.

        A prompt stays before the message that was typed there: that line says nothing.
        """
        shown = [line for line in self._screen.shown if not any(marker in line for marker in self._markers)]
        busy = self._talks.busy is not None and _is_in(self._talks.busy, shown)
        asks = self._talks.asks is not None and _is_in(cast("str", self._talks.asks.shows), shown)
        return not busy and not asks and _is_in(self._talks.ready, shown)

    async def _abort(self) -> None:
        if self.leader is not None:
            await self._type(self._talks.abort)

    # ---- what its user sees

    @property
    def _seen(self) -> list[str]:
        return [*self._screen.scrolled, *self._screen.shown]

    def _said(self) -> Said:
        return Said("\n".join(self._new_lines()).strip("\n"))

    def _answered_s(self, owned: Owned, answer: str) -> float | None:
        """A line that only blinks, moves or counts seconds has come before."""
        self._look()
        mine = filter(None, map(_words, answer.splitlines()))
        return max((self._first_seen[line] for line in mine if line in self._first_seen), default=None)

    def _new_lines(self) -> list[str]:
        """What came since the message, without what the screen always shows."""
        asks = cast("str", self._talks.asks.shows) if self._talks.asks is not None else None
        idle, signs = self._idle or frozenset(), [sign for sign in (self._talks.ready, self._talks.busy, asks) if sign]
        return [
            line
            for line in self._since_message()
            if not line or not (masked(line) in idle or any(_is_in(sign, [line]) for sign in signs))
        ]

    def _since_message(self) -> list[str]:
        """What stands below the message, if that can be seen; else the lines that were not there before."""
        seen, marker = self._seen, self._message.partition(" ")[0]
        asked = [index for index, line in enumerate(seen) if marker and marker in line]
        if not asked:
            before = Counter(self._before)
            return [line for line in seen if not line or not _taken(before, line)]
        words = _plain(self._message)
        return list(dropwhile(lambda line: _plain(line) in words, seen[asked[-1] :]))

    def _outcome(self, owned: Owned, said: Said, code: int | None) -> Outcome:
        """Its output is the screen too, without the sequences that draw it."""
        outcome = super()._outcome(owned, said, code)
        return replace(outcome, stdout=said.answer, stderr="")


def _is_in(pattern: str, lines: Sequence[str]) -> bool:
    """Whether a line shows the pattern. A blank at the end of a prompt looks like the empty screen behind it."""
    return any(re.search(pattern, shown) for line in lines for shown in {line, f"{line} " if line else line})


def _plain(line: str) -> str:
    return re.sub(r"[\W_]+", "", line)


def _words(line: str) -> str:
    """Its letters; numbers without their value, and no signs."""
    return masked(_plain(line))


def _taken(count: "Counter[str]", line: str) -> bool:
    """Whether one more of these lines was there; it is then counted off."""
    count[line] -= 1
    return count[line] >= 0
