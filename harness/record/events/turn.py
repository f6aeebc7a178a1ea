"""Turns: what the user gave, saw and stopped, and what was done to the agent's processes."""

from dataclasses import dataclass
from typing import Literal

from wedgehog.harness.record.events.base import Event

StimulusKind = Literal["user", "wake_up", "resume", "recovery"]
EndedHow = Literal["by itself", "aborted", "gave up", "deadline", "killed"]

Permission = Literal["allow", "allow_always", "deny", "deny_once", "no_answer"]
"""What a user answers who is asked for permission."""


ChosenModel = Literal["first", "second"]
"""Which of the models in the agent's spec its user chooses."""

MAIN_SESSION = "main"
"""The session of a turn that names none."""


class StimulusGiven(Event):
    """A stimulus was given to the agent. Turns count from 1."""

    turn: int
    stimulus: StimulusKind
    marker: str
    nonce: str
    text: str
    session: str = MAIN_SESSION
    """The conversation that it belongs to; those of one run share HOME and the working folder."""


@dataclass(frozen=True, slots=True)
class ToldUsage:
    """What the agent said of its own use of the model; None: it did not say."""

    input_tokens: float | None = None
    output_tokens: float | None = None
    usd: float | None = None
    of_session: bool = False
    """Whether it counts the whole session, and not the turn alone."""


class TurnEnded(Event):
    """The turn ended; the fields hold what the user could see."""

    turn: int
    ended: EndedHow
    answer: str
    error: str
    exit_code: int | None
    status: int | None
    raised: str | None
    stdout: str = ""
    stderr: str = ""
    shared: bool = False
    """Whether the process printed this for a turn of another session too: a line counts for each of these turns."""
    log_on_stderr: bool = False
    """Whether the user reads only what the agent's protocol brings: stderr is its log."""
    appends: bool = False
    """Whether all that it says is added to what its user has read: messages of a chat, pieces over a protocol."""
    after_answer_s: float | None = None
    """Seconds from the moment when the user had the answer to the end; None if they are not known."""
    usage: ToldUsage | None = None
    """None if the spec does not say where it stands, or it stood nowhere."""
    streamed: bool = False
    """Whether a service sent its status before it knew the answer, as server-sent events do."""
    opened: str | None = None
    """What a page showed when it was opened again, or come back to, for the message of this turn; else None."""
    stood_before: str | None = None
    """The answers on a page before the message, where one user has all sessions; None: its user has one session."""
    was_away: bool = False
    """Whether its user was in another conversation for a part of the turn."""
    loaded_again: bool = False
    """Whether its user came back then, and loaded the page again to see the answer."""
    picture: str = ""
    """The file in the run's folder with a picture of the page at the end of the turn; empty if there is none."""


class PermissionAsked(Event):
    """The agent asked its user for permission to run a tool."""

    turn: int
    offered: tuple[str, ...]
    """The kinds of options: allow_once, allow_always, reject_once, reject_always."""
    chosen: str
    """The kind that the user chose; empty if the user did not answer."""
    tokens: tuple[str, ...] = ()
    """turn.step.call of each tool call that the request names; empty if it names none that we know."""


class DeliveredAgain(Event):
    """The front end delivered the message of this turn a second time, with the same id."""

    turn: int
    other_event: bool = False
    """It came as an event of another kind, with an id of its own."""


class AbortSent(Event):
    """The user aborted the turn."""

    turn: int
    hangs_up: bool = False
    """The agent has no way to stop a turn: the connection to its service was closed."""


class GaveUp(Event):
    """The front end closed its connection to the agent."""

    turn: int
    after_s: float | None = None
    """How long the front end waits, in real seconds, unscaled; None if its wait ended at an event, or after it."""


AGENT_ITSELF = ("tree", "leader")
"""The words for processes without which the agent does nothing: it owes no answer, and its time stands still."""


class AgentKilled(Event):
    """A signal was sent to processes of the agent, of its tools or of the tool host during this turn."""

    turn: int
    signal: str
    whom: str
    """tree, leader, worker, tool or server"""
    pids: tuple[int, ...]


class Frozen(Event):
    """Processes of the agent or of its tool were stopped (SIGSTOP)."""

    turn: int
    whom: str
    """tree, leader, worker or tool"""
    pids: tuple[int, ...]
    for_s: float
    """The planned duration."""


class Thawed(Event):
    """The processes were continued (SIGCONT)."""

    turn: int
    whom: str
    after_s: float


class SessionSaved(Event):
    """A session file was copied after the agent was killed and before it was restarted."""

    turn: int
    path: str
    """The copy, relative to the run's folder."""
    sha256: str
    size: int
    results: tuple[str, ...] = ()
    """Tokens (`turn.step.call`) of the tool calls whose output is in the file."""
    torn: bool = False
    """The harness removed half of the last line, as a crash can."""


class StartMissed(Event):
    """No request arrived within the start-up bound, and no armed fault prevents requests."""

    turn: int
    bound_s: float
    cpu_wait_s: float = 0.0
    """How long the run had waited for processors by then, if that exceeds the extra time that was granted."""


class DeadlineHit(Event):
    """The turn exceeded its deadline, or has so many rounds or calls that it need not; the harness stops the agent."""

    turn: int
    bound_s: float
    """How long the turn had taken, if it had too many of something."""
    too_many: str = ""
    """What it had too many of, such as `27 paid calls of one step`; empty if its time was over."""
    cpu_wait_s: float = 0.0
    """How long the run had waited for processors by then, if that exceeds the extra time that was granted."""


class HangSeen(Event):
    """What the agent waited for when its turn exceeded the deadline, observed before it was stopped."""

    turn: int
    says: str
    """One sentence."""
    file: str = ""
    """The file with all observations (processes, sockets, stacks), relative to the run's folder."""
