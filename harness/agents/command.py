"""An agent that is a command line: one process per message; the turn ends when it has exited and its output is read."""

import os
import signal
from dataclasses import replace
from pathlib import Path

from wedgehog.harness.agents.base import Outcome, Session, Stimulus
from wedgehog.harness.agents.context import AgentContext, Surroundings
from wedgehog.harness.agents.output_source import OutputSource
from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.agents.told_usage import told_usage
from wedgehog.harness.sandbox.arrivals import seconds_since
from wedgehog.harness.sandbox.owned import Owned, Tree
from wedgehog.harness.sandbox.started import what_runs

Signature = tuple[int, int, int] | None
"""Inode, time and size of a file; None if there is no file."""


class CommandSession(Session):
    """Runs `command` for the first message, `resume` for later ones, `wake_up` for wake-ups."""

    def __init__(self, spec: AgentSpec, context: AgentContext, surroundings: Surroundings, tree: Tree) -> None:
        super().__init__(spec, context, surroundings, tree)
        self._before: dict[str, Signature] = {}
        self.started = what_runs(self._argv("", "user", first=True), context.cwd, surroundings.env)

    async def _say(self, text: str, kind: Stimulus, *, first: bool) -> Outcome:
        """Run the command line for this message."""
        self._before = {name: _signature(self._file(name)) for name in self._files()}
        owned = await self._start(self._argv(text, kind, first=first), talks=self._spec.stdin == "open")
        self._ended, self._delivered = "by itself", None
        try:
            code = await owned.ended()
            if self._ended == "by itself" and self._ended_by_signal(code):
                self._ended = "killed"
            await owned.finished()
        except BaseException:
            owned.kill()
            raise
        out, err = owned.output()
        answer, error = (self._read(place, out, err) for place in (self._spec.answer, self._spec.error))
        after_s = seconds_since(self._answered_s(owned))
        told = Outcome(answer, error, code, stdout=out, stderr=err, ended=self._ended, after_answer_s=after_s)
        return replace(told, usage=told_usage(self._spec.usage, (out, err)))

    def _answered_s(self, owned: Owned) -> float | None:
        """When the answer was on stdout, or else the last words on stderr; of a file that is not known."""
        source, (out, err) = OutputSource.parse(self._spec.answer), owned.arrived()
        if source.kind == "file":
            return None
        for arrived in (err,) if source.kind == "stderr" else (out, err):
            last = source.last_line(arrived.lines)
            if last is not None:
                return arrived.line_s(last)
        return err.words_s

    async def _stop(self, grace_s: float) -> None:
        """SIGINT, after `grace_s` SIGKILL to the tree."""
        if self.leader is not None:
            await self.leader.stop(signal.SIGINT, grace_s)

    def beside(self) -> "CommandSession":
        """A second process for the same session."""
        second = CommandSession(self._spec, self._context, self._around, self._tree)
        second.name = self.name
        return second

    def _argv(self, text: str, kind: Stimulus, *, first: bool) -> list[str]:
        spec = self._spec
        line = spec.wake_up if kind == "wake_up" else spec.command if first else spec.resume or spec.command
        return [self._around.fill(part, text) for part in line or ()]

    def _read(self, place: str, out: str, err: str) -> str:
        source = OutputSource.parse(place)
        if source.kind == "file":
            return self._fresh(source.where, self._before[source.where])
        if source.kind == "stderr":
            return err
        return source.within(out) or (source.within(err) if source.kind != "stdout" else "")

    def _files(self) -> list[str]:
        sources = (OutputSource.parse(place) for place in (self._spec.answer, self._spec.error))
        return [source.where for source in sources if source.kind == "file"]

    def _file(self, name: str) -> Path:
        return self._context.cwd / self._around.fill(name)

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
