"""What every kind of agent offers the runner: send a message, stop it, and end all its processes."""

import signal
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from wedgehog.harness.agents.context import AgentContext, Surroundings
from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.record.events.turn import MAIN_SESSION, ChosenModel, EndedHow, Permission, ToldUsage
from wedgehog.harness.sandbox.owned import Owned, Tree
from wedgehog.harness.sandbox.started import Started, what_runs

Stimulus = Literal["user", "wake_up", "resume"]


class AgentError(Exception):
    """The agent cannot be run as its spec says; one line. It is no verdict on the agent."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one turn ended, as the agent's user saw it; answer and error are separate."""

    answer: str = ""
    error: str = ""
    exit_code: int | None = None
    status: int | None = None
    """The HTTP status of a service."""
    streamed: bool = False
    """Whether the service sent its status before it knew the answer, as server-sent events do."""
    raised: str | None = None
    """`Type: message` of an exception, or why the service did not answer."""
    stdout: str = ""
    stderr: str = ""
    shared: bool = False
    """Whether a turn of another session in the same process may have printed a part of it."""
    log_on_stderr: bool = False
    """Whether the user reads only what the agent's protocol brings: stderr is its log."""
    appends: bool = False
    """Whether all that it says is added to what its user has read: messages of a chat, pieces over a protocol."""
    ended: EndedHow = "by itself"
    opened: str | None = None
    """What a page showed when it was opened again for this message; None: it was open."""
    stood_before: str | None = None
    """The answers on a page before this message, where one user has all sessions; None: its user has one session."""
    was_away: bool = False
    """Whether its user was in another conversation for a part of the turn."""
    loaded_again: bool = False
    """Whether its user came back then, and loaded the page again to see the answer."""
    picture: str = ""
    """The file in the run's folder with a picture of the page at the end of the turn."""
    after_answer_s: float | None = None
    """Seconds from the moment when the user had the answer to the end; None if they are not known."""
    usage: ToldUsage | None = None
    """What the agent said of its own tokens and money."""


@dataclass(frozen=True, slots=True)
class DeliveredSignal:
    """A signal that was delivered to the agent's own process; an end until `until_s` counts as its effect.

    So does an end by this very signal at any later time: a service may finish its turn before it obeys.
    """

    number: signal.Signals
    until_s: float

    def ended(self, exit_code: int, now_s: float) -> bool:
        """Whether it ended the process that exited with `exit_code` at `now_s`."""
        return exit_code == -self.number or (self.number != signal.SIGKILL and now_s <= self.until_s)


PermissionListener = Callable[[tuple[str, ...], str, str], None]
"""Called with each request for permission: the kinds of options, the one that is chosen, and what it is about."""


class Session:
    """An open agent. One turn at a time; `abort`, `give_up` and `end_turn` make the running `say` return."""

    name: str = MAIN_SESSION
    """The scenario's name for this session."""
    started: Started
    """What really runs; for a command, the latest process."""
    ready_s: float = 0.0
    """Seconds that `open` took, in real time."""
    permission: Permission = "allow"
    """What its user answers in this turn when it asks whether it may run a tool."""
    _owned: Owned | None = None
    """The agent's own process, if we started it."""
    _ended: EndedHow = "by itself"
    _delivered: DeliveredSignal | None = None

    def __init__(self, spec: AgentSpec, context: AgentContext, surroundings: Surroundings, tree: Tree) -> None:
        """`tree` owns and ends the processes."""
        self._spec, self._context, self._around, self._tree = spec, context, surroundings, tree
        self.asked: PermissionListener = lambda offered, chosen, about: None
        self.starts: list[Started] = []
        """Each process of the agent, in the order of their starts, with those of its other sessions."""

    def answers(self, permission: Permission, asked: PermissionListener) -> None:
        """Set what its user answers in the next turn to a request for permission; `asked` is called with each."""
        self.permission, self.asked = permission, asked

    def choose(self, model: ChosenModel | None) -> None:
        """Its user chooses this one of the spec's models, as `{model}` in the next messages; None: the choice stays."""
        if model is not None and self._spec.models:
            chosen = self._spec.models[model == "second"]
            self._around = replace(self._around, values={**self._around.values, "model": chosen})

    async def load_again(self) -> None:
        """Its user loads its page again before the next message. Only a page can be loaded."""

    @property
    def surroundings(self) -> Surroundings:
        """What stays the same for the whole run."""
        return self._around

    async def open(self) -> None:
        """Prepare for the first message. Errors: AgentError."""

    async def close(self) -> None:
        """Release everything that is not a process."""

    async def types_on(self) -> bool | None:
        """Wait for the end of the sign that it types in its chat; whether it does not end. None: it has no chat."""
        return None

    async def say(self, text: str, *, kind: Stimulus = "user", first: bool) -> Outcome:
        """Send a stimulus, return when the agent has finished; if cancelled, end its processes. Errors: AgentError."""
        if kind == "wake_up" and not self._spec.wakes_up:
            raise AgentError(f"{self._spec.path}: the spec has no wake_up")
        return await self._say(text, kind, first=first)

    @property
    def stops_by_hanging_up(self) -> bool:
        """Whether it has no other way to stop a turn than to close the connection to a service."""
        return False

    async def abort(self) -> None:
        """Stop the turn as the agent's user would."""
        if self._runs("aborted"):
            await self._abort()

    async def give_up(self) -> None:
        """Stop waiting: for a service, close the connection and let the service run; for a process, stop it."""
        if self._runs("gave up"):
            await self._stop(5.0)

    async def end_turn(self, grace_s: float = 5.0) -> None:
        """At the deadline: SIGINT, after `grace_s` SIGKILL to the tree; for a service, close the connection."""
        if self._runs("deadline"):
            await self._stop(grace_s)

    @property
    def leader(self) -> Owned | None:
        """The agent's own running process; None between two messages of a command, or if we did not start it."""
        return self._owned if self._owned is not None and self._owned.exit_code is None else None

    def beside(self) -> "Session | None":
        """The same agent and session, for a parallel message; None if the agent takes one message at a time."""

    async def deliver_again(self, text: str, *, other_event: bool = False) -> None:
        """Give the running or last message once more, with its id: a front end does so if no reply came in time.

        With `other_event` it comes as an event of another kind, as a mention in Slack does.
        """
        raise AgentError(f"{self._spec.path}: no front end delivers its messages")

    async def apart(
        self,
        name: str,
        context: AgentContext,
        surroundings: Surroundings,
        *,
        at_once: bool = True,
        struck: bool = False,
    ) -> "Session":
        """The same agent in another session, ready for its first message.

        `at_once`: its turns may overlap with those of this one. `struck`: a fault strikes the process of one session.
        The caller closes it. Errors: AgentError.
        """
        other = type(self)(self._spec, context, surroundings, self._tree)
        other.name = name
        await other.open()
        return other

    def signalled(self, delivered: DeliveredSignal) -> None:
        """A signal to end that process was delivered: if the process ends by it, the turn counts as killed."""
        self._delivered = delivered

    async def _say(self, text: str, kind: Stimulus, *, first: bool) -> Outcome:
        raise NotImplementedError

    def _in_turn(self) -> bool:
        return self.leader is not None

    def _runs(self, ended: EndedHow) -> bool:
        """Whether a turn is running; it then ends as `ended`."""
        self._ended = ended if self._in_turn() else self._ended
        return self._in_turn()

    async def _abort(self) -> None:
        """Send the spec's signal to the process group, as a terminal does."""
        if self.leader is not None:
            self.leader.send_signal(signal.Signals[self._spec.abort])

    async def _stop(self, grace_s: float) -> None:
        raise NotImplementedError

    def _ended_by_signal(self, exit_code: int) -> bool:
        return self._delivered is not None and self._delivered.ended(exit_code, self._context.clock.now())

    async def _start(self, argv: list[str], *, talks: bool = False, terminal: tuple[int, int] | None = None) -> Owned:
        env, context = self._around.env, self._context
        try:
            self._owned = await self._tree.start(
                argv, env=env, cwd=context.cwd, log=context.log, talks=talks, terminal=terminal
            )
        except (OSError, ValueError) as bad:
            why = bad.strerror if isinstance(bad, OSError) else bad
            raise AgentError(f"{self._spec.path}: cannot start {argv[0]!r}: {why}") from None
        began_s = round(context.clock.now(), 4)
        self.started = replace(what_runs(argv, context.cwd, env, self._owned.pid), began_s=began_s)
        self.starts.append(self.started)
        return self._owned
