"""An agent that is a command line: one process per message; the turn ends when it has exited and its output is read."""

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
"""Inode, time and size of a file; None if there is no file."""


@dataclass(slots=True)
class _CommandTurn:
    owned: Owned
    before: dict[str, Signature]
    ended: TurnEnding = field(default="by itself")
    delivered: DeliveredSignal | None = None


class CommandSession:
    """Runs `command` for the first message, `resume` for later ones, `wake_up` for wake-ups."""

    def __init__(self, spec: AgentSpec, place: AgentContext, surroundings: Surroundings, tree: Tree) -> None:
        """`tree` owns and ends the processes."""
        self._spec, self._place, self._around, self._tree = spec, place, surroundings, tree
        self._turn: _CommandTurn | None = None
        self._started = self._what(self._argv("", "user", first=True))

    @property
    def started(self) -> Started:
        """The last process; before the first message, the command line that will run."""
        return self._started

    async def open(self) -> None:
        """Does nothing: a command starts with its message."""

    async def close(self) -> None:
        """Does nothing: the tree ends the processes."""

    async def say(self, text: str, *, kind: Stimulus = "user", first: bool) -> Outcome:
        """Run the command line for this message. Errors: AgentError if it cannot be started."""
        argv = self._argv(text, kind, first=first)
        before = {name: _signature(self._file(name)) for name in self._files()}
        turn = self._turn = _CommandTurn(await self._start(argv), before)
        self._started = self._what(argv, turn.owned.pid)
        try:
            code = await turn.owned.ended()
            if turn.delivered and turn.ended == "by itself" and turn.delivered.ended(code, self._place.clock.now()):
                turn.ended = "killed"
            await turn.owned.finished()
        except BaseException:
            turn.owned.kill()
            raise
        return self._outcome(turn, code)

    async def abort(self) -> None:
        """Send the spec's signal to the process group, as a terminal does."""
        if turn := self._running("aborted"):
            turn.owned.send_signal(signal.Signals[self._spec.abort])

    async def give_up(self) -> None:
        """End the process, as a user who stops waiting does."""
        if turn := self._running("gave up"):
            await turn.owned.stop(signal.SIGINT, 5.0)

    async def end_turn(self, grace_s: float = 5.0) -> None:
        """SIGINT, after `grace_s` SIGKILL to the tree."""
        if turn := self._running("deadline"):
            await turn.owned.stop(signal.SIGINT, grace_s)

    @property
    def leader(self) -> Owned | None:
        """The process of the running message."""
        turn = self._turn
        return turn.owned if turn is not None and turn.owned.exit_code is None else None

    def beside(self) -> "CommandSession":
        """A second process for the same session."""
        return CommandSession(self._spec, self._place, self._around, self._tree)

    def signalled(self, delivered: DeliveredSignal) -> None:
        """If the running process ends by it, the turn counts as killed."""
        if self._turn is not None:
            self._turn.delivered = delivered

    def _running(self, ended: TurnEnding) -> _CommandTurn | None:
        """The running turn, marked to end as `ended`."""
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
        out, err = turn.owned.output()
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
        """The file's text, or nothing if the file is unchanged since before this turn."""
        file = self._file(name)
        now = _signature(file)
        return "" if now is None or now == before else file.read_text(encoding="utf-8", errors="replace")


def _signature(file: Path) -> Signature:
    try:
        seen = os.stat(file)  # noqa: PTH116  a single call, so that all values are of the same file
    except OSError:
        return None
    return seen.st_ino, seen.st_mtime_ns, seen.st_size
