"""Builds a history event by event, with consistent ids and times, for tests of checks and reports.

>>> tell = HistoryBuilder()
>>> tell.message()
1
>>> tell.answer_step(1)
>>> history = tell.end().seal()
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from wedgehog.harness.record.events.call import ToolResult
from wedgehog.harness.record.events.files import FileSeen, FilesSeen
from wedgehog.harness.record.events.run import CpuWait, CpuWaitSeen, LagSeen, RunStarted
from wedgehog.harness.record.events.service import BeaconSeen
from wedgehog.harness.record.events.turn import (
    MAIN_SESSION,
    AbortSent,
    AgentKilled,
    DeadlineHit,
    EndedHow,
    Frozen,
    GaveUp,
    SessionSaved,
    StartMissed,
    StimulusGiven,
    StimulusKind,
    Thawed,
    ToldUsage,
    TurnEnded,
)
from wedgehog.harness.record.history import History
from wedgehog.harness.testing.call_builder import CallBuilder

NO_LINKS: Mapping[str, str] = {}
MODEL = "claude-sonnet-4-6"
CUT_TEXT = "The lighthouse keeper counted seventeen"
"""Text of a reply up to its cut; long enough to be recognized."""


class HistoryBuilder(CallBuilder):
    """Appends the events of a run, one fact per method, and advances the time."""

    def __init__(
        self,
        *,
        time_scale: float = 1.0,
        carries_nonces: bool = True,
        stream: bool = True,
        model: str = MODEL,
        error_at_path: bool = False,
        started: str = "2026-06-01T12:00:00+00:00",
        **more: Any,
    ) -> None:
        super().__init__(stream=stream, model=model)
        self.add(
            RunStarted(
                scenario="built",
                agent="built",
                network="embedded",
                time_scale=time_scale,
                started=started,
                carries_nonces=carries_nonces,
                error_at_path=error_at_path,
                start_up_s=0.5,
                **more,
            )
        )

    def lag(self, worst_s: float) -> "HistoryBuilder":
        """The harness lagged."""
        return self.add(LagSeen(worst_s=worst_s))

    def waited(
        self, agent_s: float, *, for_s: float, network_s: float = 0.0, harness_s: float = 0.0
    ) -> "HistoryBuilder":
        """Waits for a processor in the last `for_s` seconds."""
        wait = CpuWait(self._now_s - for_s, self._now_s, agent_s, network_s, harness_s)
        return self.add(CpuWaitSeen(turn=self.turn, waits=(wait,)))

    def seal(self) -> History:
        """The finished history."""
        if self._history.first(LagSeen) is None:
            self.lag(0.0)
        return self._history.seal()

    # ---- turns

    def message(self, kind: StimulusKind = "user", session: str = MAIN_SESSION) -> int:
        """A stimulus is given; returns the number of its turn."""
        number = max(self._turns, default=0) + 1
        self._turns.append(number)
        self.turn = number
        self._given = StimulusGiven(
            turn=number,
            stimulus=kind,
            marker=f"marker{number}",
            nonce=f"saffron{number:02d}otter",
            text="Go on.",
            session=session,
        )
        self.add(self._given)
        return number

    def goes_on(self, turn: int) -> "HistoryBuilder":
        """The next events belong to this one of two open turns."""
        self._given = next(given for given in self._history.of(StimulusGiven) if given.turn == turn)
        self.turn = turn
        return self

    def frozen(self, for_s: float, whom: str = "tree") -> "HistoryBuilder":
        """Processes are frozen for `for_s` seconds."""
        self.add(Frozen(turn=self.turn, whom=whom, pids=(4711,), for_s=for_s))
        self.wait(for_s)
        return self.add(Thawed(turn=self.turn, whom=whom, after_s=for_s))

    def end(
        self,
        answer: str | None = None,
        *,
        ended: EndedHow = "by itself",
        error: str = "",
        exit_code: int | None = 0,
        status: int | None = None,
        raised: str | None = None,
        stdout: str | None = None,
        stderr: str = "",
        shared: bool = False,
        log_on_stderr: bool = False,
        appends: bool = False,
        after_answer_s: float | None = None,
        usage: ToldUsage | None = None,
        streamed: bool = False,
        opened: str | None = None,
        stood_before: str | None = None,
        was_away: bool = False,
        loaded_again: bool = False,
        picture: str = "",
    ) -> "HistoryBuilder":
        """The turn ends; by default its answer contains the nonce."""
        words = f"Here you are: {self._given.nonce}" if answer is None else answer
        self.add(
            TurnEnded(
                turn=self.turn,
                ended=ended,
                answer=words,
                error=error,
                exit_code=exit_code,
                status=status,
                raised=raised,
                stdout=words if stdout is None else stdout,
                stderr=stderr or error,
                shared=shared,
                log_on_stderr=log_on_stderr,
                appends=appends,
                after_answer_s=after_answer_s,
                usage=usage,
                streamed=streamed,
                opened=opened,
                stood_before=stood_before,
                was_away=was_away,
                loaded_again=loaded_again,
                picture=picture,
            )
        )
        self.turn = 0
        return self

    def fails(self, words: str = "Error: the provider is overloaded", exit_code: int = 1) -> "HistoryBuilder":
        """The turn ends in a surfaced error."""
        return self.end("", error=words, exit_code=exit_code)

    def abort(self) -> "HistoryBuilder":
        """The user aborts the turn."""
        return self.add(AbortSent(turn=self.turn))

    def give_up(self, after_s: float | None = None) -> "HistoryBuilder":
        """The front end closes its connection."""
        return self.add(GaveUp(turn=self.turn, after_s=after_s))

    def kill(self, whom: str = "tree", saved: Sequence[str] = ()) -> "HistoryBuilder":
        """The agent is killed, and its turn ends; `saved`: the results in its session file."""
        self.add(AgentKilled(turn=self.turn, signal="SIGKILL", whom=whom, pids=(4711,)))
        self.add(SessionSaved(turn=self.turn, path="session.jsonl", sha256="", size=0, results=tuple(saved)))
        return self.end("", ended="killed", exit_code=-9)

    def deadline(self, bound_s: float = 120.0, cpu_wait_s: float = 0.0, too_many: str = "") -> "HistoryBuilder":
        """The turn exceeds its deadline, or has too many of something."""
        return self.add(DeadlineHit(turn=self.turn, bound_s=bound_s, cpu_wait_s=cpu_wait_s, too_many=too_many))

    def start_missed(self, bound_s: float = 60.0, cpu_wait_s: float = 0.0) -> "HistoryBuilder":
        """No request arrived within the start-up bound."""
        return self.add(StartMissed(turn=self.turn, bound_s=bound_s, cpu_wait_s=cpu_wait_s))

    # ---- tools

    def starts(self, token: str, *, background: bool = False) -> None:
        """A command starts; with `background` it ends in `&`."""
        self.add(BeaconSeen(token=token, phase="started", background=background))

    def done(self, token: str, exit_code: int | None = None) -> None:
        """A command has ended."""
        self.add(BeaconSeen(token=token, phase="done", exit_code=exit_code))

    def finds(
        self,
        *,
        by_user: Sequence[str] = (),
        executable: Sequence[str] = (),
        links: Mapping[str, str] = NO_LINKS,
        **texts: str | bytes | None,
    ) -> "HistoryBuilder":
        """What stands now in the files of these names (`.txt` is added); None: the file is not there."""
        found = (_file(f"{name}.txt", text) for name, text in texts.items())
        files = tuple(replace(it, executable=it.path in executable, link_to=links.get(it.path, "")) for it in found)
        self.add(FilesSeen(turn=self._given.turn, files=files, by_user=tuple(by_user)))
        return self

    def runs(self, token: str, for_s: float = 0.1, *, is_error: bool = False) -> ToolResult:
        """A command runs; returns its result."""
        self.starts(token)
        self.wait(for_s)
        if not is_error:
            self.done(token)
        return result(token, is_error=is_error)


def _file(name: str, text: str | bytes | None) -> FileSeen:
    if text is None:
        return FileSeen(name, "missing")
    return FileSeen.of(name, text.encode() if isinstance(text, str) else text)


def result(
    token: str,
    *,
    chars: int = 50,
    is_error: bool = False,
    printed: bool = True,
    signs: Sequence[str] | None = None,
    prints_first: bool | None = None,
) -> ToolResult:
    """The result of a tool call; `printed`: with the last output of its command; `signs`: what its text tells."""
    told = tuple(signs) if signs is not None else None
    return ToolResult(f"id-{token}", chars, is_error, token, printed, signs=told, prints_first=prints_first)
