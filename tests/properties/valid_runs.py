"""Valid runs: answers, surfaced errors, retries within bounds, obeyed aborts, recovery.

First the behaviour of an agent is drawn (how often it retries, how long it waits, whether it streams or trims), then
its turns. No invariant may fail on such a run.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import strategies as st

from wedgehog.harness.record.events.call import ToolResult
from wedgehog.harness.record.history import History
from wedgehog.harness.testing.history_builder import CUT_TEXT, HistoryBuilder, result

Draw = Callable[[st.SearchStrategy[Any]], Any]
BoundValue = int | float | bool
RECOVERY_TOOLS = ("shell", "wedgehog_hello")
TEN_RETRIES = 10
"""The largest common default of SDKs."""


@dataclass(frozen=True, slots=True)
class AgentBehaviour:
    """How an agent behaves when calls fail."""

    retries: int
    """Per step: 0 gives up at once, 2 is an SDK's default."""
    backoff_s: float
    stream: bool
    trims: bool
    """Its requests contain only the newest turn."""
    one_tool_at_a_time: bool


behaviours = st.builds(
    AgentBehaviour,
    retries=st.sampled_from([0, 1, 2, 5, TEN_RETRIES]),
    backoff_s=st.sampled_from([0.15, 0.5, 4.0]),
    stream=st.booleans(),
    trims=st.booleans(),
    one_tool_at_a_time=st.booleans(),
)
FAILURES = (
    "refused",
    "rate limited",
    "rate limited until",
    "too long a wait",
    "cut",
    "dribble",
    "stall",
    "half a call",
)


@dataclass
class RunDraw:
    """One run under construction, and its agent."""

    tell: HistoryBuilder
    agent: AgentBehaviour
    draw: Draw
    bounds: dict[str, BoundValue] = field(default_factory=dict)
    """The bounds that a violation needs."""
    recovered: bool = False
    """Whether the recovery message was given."""
    jobs: list[str] = field(default_factory=list)
    """The tokens of commands that run on in the background."""

    def ask(self, step: int, results: Sequence[ToolResult] = ()) -> int:
        """A main request of the open turn."""
        sees = (self.tell.turn,) if self.agent.trims else None
        return self.tell.ask(step, results=results, sees=sees)

    def failures(self, step: int, results: Sequence[ToolResult], count: int) -> None:
        """Failed attempts of a step, each followed by the required wait."""
        for kind in self.draw(st.lists(st.sampled_from(FAILURES), min_size=count, max_size=count)):
            self.tell.wait(fail_once(self.tell, self.ask(step, results), kind) + self.agent.backoff_s)

    def tool_round(self, step: int, results: Sequence[ToolResult]) -> tuple[ToolResult, ...]:
        """The model asks for tools, and some fail; the results that the next request carries."""
        count = self.draw(st.integers(1, 3))
        tokens = self.tell.reply(self.ask(step, results), "Let me look.", tools=[True] * count)
        errors = self.draw(st.lists(st.booleans(), min_size=count, max_size=count))
        if self.agent.one_tool_at_a_time:
            return tuple(self.tell.runs(t, is_error=bad) for t, bad in zip(tokens, errors, strict=True))
        for token in tokens:
            self.tell.starts(token)
        for token, bad in zip(tokens, errors, strict=True):
            if not bad:
                self.tell.wait(0.1).done(token, exit_code=self.draw(st.sampled_from([None, 0])))
        return tuple(result(token, is_error=bad) for token, bad in zip(tokens, errors, strict=True))

    def work(self, most_rounds: int = 3, *, least_rounds: int = 0) -> tuple[int, tuple[ToolResult, ...]]:
        """Tool rounds with failed attempts; the number of the next step and the results that it carries."""
        results: tuple[ToolResult, ...] = ()
        rounds = self.draw(st.integers(least_rounds, most_rounds))
        for step in range(1, rounds + 1):
            self.failures(step, results, self.draw(st.integers(0, min(2, self.agent.retries))))
            results += self.tool_round(step, results)
        return rounds + 1, results


Violation = Callable[[RunDraw], None]


def fail_once(tell: HistoryBuilder, call: int, kind: str) -> float:
    """One failed attempt; the seconds that must pass before the next one."""
    if kind == "refused":
        tell.refuse(call, 503)
    elif kind == "rate limited":
        tell.refuse(call, 429, retry_after_s=2)
        return 2.0
    elif kind == "rate limited until":
        tell.refuse(call, 429, retry_after_s=2, is_date=True)
        return 1.1
    elif kind == "too long a wait":
        tell.refuse(call, 429, retry_after_s=120)
    elif kind == "cut":
        tell.cut(call, CUT_TEXT)
    elif kind == "dribble":
        tell.stall(call, delivered=5, waits_s=1.0)
    elif kind == "half a call":
        tell.cut(call, tools=[False])
    else:
        tell.stall(call, waits_s=1.0)
    return 0.0


def answered(play: RunDraw) -> None:
    """A message is answered, perhaps at a later attempt."""
    step, results = play.work()
    play.failures(step, results, play.draw(st.integers(0, play.agent.retries)))
    if play.draw(st.booleans()):
        play.tell.reply(play.tell.ask(1, background="title"), "A title")
    play.tell.reply(play.ask(step, results), f"Done {play.tell.nonce}")
    play.tell.end()


def delegates(play: RunDraw) -> None:
    """The model gives tasks to subagents; those that end well are quoted, those that fail are not."""
    count = play.draw(st.integers(1, 3))
    tokens = play.tell.reply(play.ask(1), tools=[True] * count)
    quotes: list[int] = []
    for number in range(1, count + 1):
        side = f"subagent {100 * play.tell.turn + number}"
        for kind in play.draw(st.lists(st.sampled_from(FAILURES), max_size=2)):
            play.tell.wait(fail_once(play.tell, play.tell.ask(1, side=side), kind) + play.agent.backoff_s)
        if play.draw(st.booleans()):
            quotes.append(play.tell.ask(1, side=side))
            play.tell.reply(quotes[-1], "The task is done.")
    call = play.tell.ask(2, results=[result(token) for token in tokens], quotes=quotes)
    play.tell.reply(call, f"Done {play.tell.nonce}")
    play.tell.end()


def gives_in(play: RunDraw) -> None:
    """Every attempt fails, and the agent shows an error."""
    step, results = play.work()
    play.failures(step, results, play.agent.retries + 1)
    words = ("Error: overloaded", "Traceback: APIConnectionError", f"{CUT_TEXT} … Error: cut")
    play.tell.fails(play.draw(st.sampled_from(words)))


def stops_at_its_limit(play: RunDraw) -> None:
    """The model asks for one more tool after a round, and the agent stops with words of its own."""
    step, results = play.work(least_rounds=1)
    play.tool_round(step, results)
    play.tell.end("I stopped after the rounds that I am allowed.")


def aborted(play: RunDraw) -> None:
    """The user aborts the turn; a request that was already sent may still arrive."""
    step, results = play.work()
    call = play.ask(step, results)
    play.tell.abort()
    play.tell.reply(call, how="hung up", delivered=0)
    if play.draw(st.booleans()):
        play.tell.wait(0.5)
        play.tell.refuse(play.ask(step, results))
    play.tell.wait(play.draw(st.sampled_from([0.1, 30.0]))).end("", ended="aborted", exit_code=130)


def front_end_gives_up(play: RunDraw) -> None:
    """The front end gives up before the deadline, and the agent sends no further request."""
    step, results = play.work()
    call = play.ask(step, results)
    play.tell.wait(30).give_up(after_s=play.draw(st.sampled_from([30.0, None])))
    play.tell.reply(call, how="hung up", delivered=0)
    play.tell.end("", ended="gave up", exit_code=None)


def cannot_connect_at_first(play: RunDraw) -> None:
    """The first attempts do not reach the provider."""
    for _ in range(play.draw(st.integers(1, 3))):
        play.tell.connection_refused()
        play.tell.wait(1)
    answered(play)


def calls_without_a_stimulus(play: RunDraw) -> None:
    """After the turn the agent sends calls of its own."""
    answered(play)
    for _ in range(play.draw(st.integers(0, 3))):
        play.tell.reply(play.tell.ask(1, turn=0, background=play.draw(st.sampled_from(["", "memory"]))), "Noted.")


def works_in_the_background(play: RunDraw) -> None:
    """A command ends in `&`: its result comes at once, and its job continues or is already done."""
    (token,) = play.tell.reply(play.ask(1), tools=[True])
    play.tell.starts(token, background=True)
    outlives = play.draw(st.booleans())
    play.tell.wait(play.draw(st.sampled_from([0.1, 1.0])))
    if not outlives:
        play.tell.done(token)
    call = play.ask(2, [result(token)])
    play.tell.wait(play.draw(st.sampled_from([0.1, 30.0])))
    if outlives and play.draw(st.booleans()):
        play.tell.done(token)
    elif outlives:
        play.jobs.append(token)
    play.tell.reply(call, f"Done {play.tell.nonce}")
    play.tell.end()


def killed(play: RunDraw) -> None:
    """The agent is killed during a tool call; results that it sent or saved are kept, others are lost."""
    step, results = play.work(most_rounds=1)
    (token,) = play.tell.reply(play.ask(step, results), tools=[True])
    so_far = play.draw(st.sampled_from(["offered", "started", "done", "saved", "sent"]))
    if so_far != "offered":
        play.tell.starts(token)
    if so_far in ("done", "saved", "sent"):
        play.tell.done(token)
    held = so_far in ("saved", "sent")
    if so_far == "sent":
        play.ask(step + 1, (*results, result(token)))
    play.tell.kill(saved=[it.token for it in results] + ([token] if held else [])).message()
    lost = play.draw(st.sampled_from([(), (result(token, is_error=True, printed=False),)]))
    play.tell.answer_step(1, (*results, result(token)) if held else (*results, *lost))
    play.tell.end()


def stands_still(play: RunDraw) -> None:
    """The agent's processes are frozen for longer than any bound; that time does not count."""
    (token,) = play.tell.reply(play.ask(1), tools=[True])
    play.tell.starts(token)
    play.tell.frozen(play.draw(st.sampled_from([1.0, 60.0, 600.0])), play.draw(st.sampled_from(["tree", "leader"])))
    play.tell.done(token)
    play.tell.answer_step(2, [result(token)])
    play.tell.end()


def two_at_once(play: RunDraw) -> None:
    """A second message comes during a tool call; both are answered, in either order."""
    first = play.tell.turn
    (token,) = play.tell.reply(play.ask(1), tools=[True])
    play.tell.starts(token)
    second = play.tell.message()
    play.tell.reply(play.ask(1), f"Done {play.tell.nonce}")
    second_first = play.draw(st.booleans())
    if second_first:
        play.tell.end()
    play.tell.goes_on(first).done(token)
    play.tell.answer_step(2, [result(token)])
    play.tell.end()
    if not second_first:
        play.tell.goes_on(second).end()


SHAPES = (
    answered,
    gives_in,
    stops_at_its_limit,
    aborted,
    front_end_gives_up,
    cannot_connect_at_first,
    calls_without_a_stimulus,
    delegates,
    works_in_the_background,
    killed,
    stands_still,
    two_at_once,
)


def wake_up(play: RunDraw) -> None:
    """The agent's own timer fires; it may stay silent if its last call succeeds."""
    step, results = play.work()
    play.failures(step, results, play.draw(st.integers(0, play.agent.retries)))
    play.tell.reply(play.ask(step, results), "Nothing to do.")
    play.tell.end(play.draw(st.sampled_from(["", f"Noted. {play.tell.nonce}"])))


def some_turns(play: RunDraw, least: int = 1) -> None:
    """One to three valid turns."""
    for shape in play.draw(st.lists(st.sampled_from((*SHAPES, wake_up)), min_size=least, max_size=3)):
        play.tell.message("wake_up" if shape is wake_up else play.draw(st.sampled_from(["user", "resume"])))
        shape(play)


def recovery(play: RunDraw) -> None:
    """After healing the first or the second message is answered."""
    if play.draw(st.booleans()):
        play.tell.message("recovery")
        play.tell.refuse(play.ask(1))
        play.tell.fails("Error: circuit open")
    play.tell.message("recovery")
    results: tuple[ToolResult, ...] = ()
    for step in range(1, len(RECOVERY_TOOLS) + 1):
        play.failures(step, results, play.draw(st.integers(0, min(1, play.agent.retries))))
        (token,) = play.tell.reply(play.ask(step, results), tools=[True])
        results += (play.tell.runs(token),)
    play.tell.reply(play.ask(len(results) + 1, results), f"Done {play.tell.nonce}")
    play.tell.end()


def begin(draw: Draw, *, keeps: bool = False) -> RunDraw:
    """A new run with a drawn agent; `keeps`: one that never leaves earlier turns out."""
    agent = draw(behaviours)
    agent = replace(agent, trims=agent.trims and not keeps)
    return RunDraw(HistoryBuilder(stream=agent.stream, recovery_tools=RECOVERY_TOOLS), agent, draw)


@st.composite
def valid_histories(draw: Draw) -> History:
    """Runs on which no invariant may fail."""
    play = begin(draw)
    some_turns(play)
    recovery(play)
    return play.tell.seal()


@st.composite
def answered_histories(draw: Draw) -> History:
    """Valid runs in which every message is answered."""
    play = begin(draw)
    for shape in draw(st.lists(st.sampled_from([answered, cannot_connect_at_first]), min_size=1, max_size=3)):
        play.tell.message()
        shape(play)
    recovery(play)
    return play.tell.seal()
