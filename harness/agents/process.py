"""An agent that is a command line: one process per message, over when its leader has exited and its output is read."""

import os
import signal
from dataclasses import dataclass, field
from pathlib import Path

from wedgehog.harness.agents.base import AgentContext, AgentError, DeliveredSignal, Outcome, Stimulus, TurnEnding
from wedgehog.harness.agents.sources import OutputSource
from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.agents.surroundings import Surroundings
from wedgehog.harness.sandbox import Owned, Started, Tree, what_runs

Signature = tuple[int, int, int] | None
"""What tells a file that was written in this turn from one that lay there before."""


@dataclass(slots=True)
class _CommandTurn:
    owned: Owned
    before: dict[str, Signature]
    ended: TurnEnding = field(default="by itself")
    blow: DeliveredSignal | None = None


class CommandSession:
    """Runs `command` for the first message, `resume` for the next ones, `wake_up` for wake-ups."""

    def __init__(self, spec: AgentSpec, place: AgentContext, surroundings: Surroundings, tree: Tree) -> None:
        """`tree` owns whatever is started here; who made it ends it."""
        self._spec, self._place, self._around, self._tree = spec, place, surroundings, tree
        self._turn: _CommandTurn | None = None
        self._started = self._what(self._argv("", "user", first=True))

    @property
    def started(self) -> Started:
        """What was started last; before the first message, what will be."""
        return self._started

    async def open(self) -> None:
        """A command needs nothing before its first message."""

    async def close(self) -> None:
        """Its processes are the tree's to end."""

    async def say(self, text: str, *, kind: Stimulus = "user", first: bool) -> Outcome:
        """Run the command line for this message. Errors: AgentError where it cannot be started."""
        argv = self._argv(text, kind, first=first)
        before = {name: _signature(self._file(name)) for name in self._files()}
        turn = self._turn = _CommandTurn(await self._start(argv), before)
        self._started = self._what(argv, turn.owned.pid)
        try:
            code = await turn.owned.ended()
            if turn.blow and turn.ended == "by itself" and turn.blow.ended(code, self._place.clock.now()):
                turn.ended = "killed"
            await turn.owned.finished()
        except BaseException:
            turn.owned.kill()
            raise
        return self._outcome(turn, code)

    async def abort(self) -> None:
        """The spec's signal to the process group, as from a terminal."""
        if turn := self._running("aborted"):
            turn.owned.send_signal(signal.Signals[self._spec.abort])

    async def give_up(self) -> None:
        """Whoever waits for a command and stops waiting ends it."""
        if turn := self._running("gave up"):
            await turn.owned.stop(signal.SIGINT, 5.0)

    async def end_turn(self, grace_s: float = 5.0) -> None:
        """SIGINT, `grace_s`, SIGKILL of the tree."""
        if turn := self._running("deadline"):
            await turn.owned.stop(signal.SIGINT, grace_s)

    @property
    def leader(self) -> Owned | None:
        """The process of the message under way."""
        turn = self._turn
        return turn.owned if turn is not None and turn.owned.exit_code is None else None

    def beside(self) -> "CommandSession":
        """A second process on the same session."""
        return CommandSession(self._spec, self._place, self._around, self._tree)

    def struck(self, blow: DeliveredSignal) -> None:
        """If the process under way ends by it, the turn was killed."""
        if self._turn is not None:
            self._turn.blow = blow

    def _running(self, ended: TurnEnding) -> _CommandTurn | None:
        """The turn under way, which from here on ends as `ended`."""
        if self._turn is None or self._turn.owned.exit_code is not None:
            return None
        self._turn.ended = ended
        return self._turn

    def _argv(self, text: str, kind: Stimulus, *, first: bool) -> list[str]:
        spec = self._spec
        if kind == "wake_up" and spec.wake_up is None:
            raise AgentError(f"{spec.path}: the spec has no wake_up")
        line = spec.wake_up if kind == "wake_up" else spec.command if first else spec.resume or spec.command
        return [self._around.fill(part, text) for part in line or ()]

    async def _start(self, argv: list[str]) -> Owned:
        env, place = self._around.env, self._place
        try:
            return await self._tree.start(argv, env=env, cwd=place.cwd, log=place.log)
        except (OSError, ValueError) as bad:
            why = bad.strerror if isinstance(bad, OSError) else bad
            raise AgentError(f"{self._spec.path}: cannot start {argv[0]!r}: {why}") from None

    def _what(self, argv: list[str], pid: int | None = None) -> Started:
        return what_runs(argv, self._place.cwd, self._around.env.get("PATH"), pid)

    def _outcome(self, turn: _CommandTurn, code: int) -> Outcome:
        out, err = turn.owned.stdout.text(), turn.owned.stderr.text()
        return Outcome(
            answer=self._read(self._spec.answer, turn, out, err),
            error=self._read(self._spec.error, turn, out, err),
            exit_code=code,
            stdout=out,
            stderr=err,
            ended=turn.ended,
        )

    def _read(self, place: str, turn: _CommandTurn, out: str, err: str) -> str:
        source = OutputSource.parse(place)
        if source.kind == "file":
            return self._fresh(source.where, turn.before[source.where])
        if source.kind == "stderr":
            return err
        return source.within(out) or (source.within(err) if source.kind != "stdout" else "")

    def _files(self) -> list[str]:
        sources = (OutputSource.parse(place) for place in (self._spec.answer, self._spec.error))
        return [source.where for source in sources if source.kind == "file"]

    def _file(self, name: str) -> Path:
        return self._place.cwd / self._around.fill(name)

    def _fresh(self, name: str, before: Signature) -> str:
        """The file's text, unless it is the one that lay there before this turn: an old answer is no answer."""
        file = self._file(name)
        now = _signature(file)
        return "" if now is None or now == before else file.read_text(encoding="utf-8", errors="replace")


def _signature(file: Path) -> Signature:
    try:
        seen = os.stat(file)  # noqa: PTH116  one call, and no second look that could see another file
    except OSError:
        return None
    return seen.st_ino, seen.st_mtime_ns, seen.st_size
