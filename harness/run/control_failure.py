"""Why a control run failed: what is missing, and what its user can do."""

import contextlib
import re
import signal

from wedgehog.harness.agents.callables.callable_host import STACK_BELOW
from wedgehog.harness.record.chat_refusals import refused_last
from wedgehog.harness.record.error_words import TRACE, exception_in
from wedgehog.harness.record.events.call import CallUnscripted
from wedgehog.harness.record.events.run import HostRefused, Trouble
from wedgehog.harness.record.events.turn import HangSeen, StartMissed, TurnEnded
from wedgehog.harness.record.history import History
from wedgehog.harness.record.turn_outcome import TurnOutcome, outcome_of
from wedgehog.harness.record.views import Turn

NO_PROPERTY = (
    "If its reply is JSON by a schema, name the property that it shows, `finish: {arg: …}`, and the values of other "
    "properties that lead to an answer, `finish: {with: {…}}`"
)
ASKS_FOR_ITS_URL = "does the agent use {llm_url}?"
"""Said of an agent that runs well and makes no request, and of one whose words are about a connection or a key."""
_OF_THE_WAY = re.compile(r"connect|network|resolve|getaddrinfo|\bENOTFOUND|api.?key|unauthori[sz]ed", re.IGNORECASE)
_WITHOUT_VERSION = re.compile(r"^(?!.*/v\d).*/(chat/completions|responses|messages)$")
LAST_CHARS = 300
"""At most so much of the agent's last words is quoted."""


def why_failed(history: History, *, structured: bool = False) -> str:
    """What is missing, and what the user can do; `structured`: a request asked for JSON by a schema."""
    trouble = history.first(Trouble)
    if trouble:
        return trouble.what
    calls = history.calls
    if history.first(StartMissed) or not calls:
        return _silent(history)
    refused, path = next(((call.refused, call.arrived.path) for call in calls if call.refused), (None, ""))
    if refused:
        what = f"{refused.status} {refused.message}{path_hint(path) if refused.status == 404 else ''}"
        return f"the provider refused its request without any fault: {what}{_words(history)}"
    unscripted = history.first(CallUnscripted)
    if unscripted:
        return f"a request did not fit: {unscripted.why}"
    turn = history.turns[0]
    outcome = outcome_of(turn, history)
    limited = next((call.limited for call in calls if call.limited), "")
    if limited and (outcome.kind == "truncated" or not any(call.ok for call in turn.calls)):
        return f"{limited}: let the agent allow more"
    said = _no_answer(turn, outcome, history)
    return f"{said} {NO_PROPERTY}" if structured and outcome.kind != "silent" else said


def path_hint(path: str) -> str:
    """What is wrong with a path that has its version twice or not at all, as some SDKs add it and others do not."""
    if "/v1/v1/" in path:
        return " (it has /v1 twice: write {llm_url} without /v1 in the spec)."
    return " (it lacks /v1: write {llm_url}/v1 in the spec)." if _WITHOUT_VERSION.search(path) else ""


def _no_answer(turn: Turn, outcome: TurnOutcome, history: History) -> str:
    hang = history.first(HangSeen)
    if what := refused_last(turn, history):
        return f"the chat refused its message: {what}"
    if outcome.kind == "silent" and hang is not None:
        return f"{hang.says}: its turn did not end: {outcome.how}"
    said = f"its answer did not hold the model's words ({outcome.kind}: {outcome.how}); is `answer:` right?"
    tools = sorted({name for call in turn.main_calls for name in call.arrived.tools})
    if sum(call.final for call in turn.main_calls) < 2 or not tools:
        return said
    return f"{said} If its model answers by a tool call (tools: {', '.join(tools)}), name that tool in `finish:`"


def _silent(history: History) -> str:
    """No request came: its cause, as far as is known, and how the agent ended."""
    missed, ended, hang = history.first(StartMissed), history.first(TurnEnded), history.first(HangSeen)
    how = f" within {missed.bound_s:g} s" if missed else _ending(ended) if ended else ""
    what, words = f"no request for the model arrived{how}", _last_words(history)
    refused = ", ".join(f"{event.host} ({event.why})" for event in history.of(HostRefused))
    failed = not missed and ended is not None and (ended.exit_code or ended.raised or (ended.status or 0) >= 400)
    if refused:
        return f"it asked for {refused}: {what}.{_words(history)}"
    if failed:
        asks = f": {ASKS_FOR_ITS_URL}" if _OF_THE_WAY.search(words) else ""
        return f"it said {words!r}: {what}{asks}" if words else f"{what}. It said nothing."
    waits = f"{hang.says}: " if hang is not None else ""
    return f"{waits}{what}: {ASKS_FOR_ITS_URL}{_words(history)}"


def _ending(ended: TurnEnded) -> str:
    code = ended.exit_code
    if ended.raised and code is None:
        return ", and talking to the agent failed"
    if code is None:
        return f", and the service replied with HTTP {ended.status}" if ended.status is not None else ""
    if code < 0:
        return f", and the agent was ended by {_signal(-code)}"
    return f", and the agent ended with exit code {code}"


def _signal(number: int) -> str:
    with contextlib.suppress(ValueError):
        return signal.Signals(number).name
    return f"signal {number}"


def _words(history: History) -> str:
    words = _last_words(history)
    return f" Its last words: {words}" if words else ""


def _last_words(history: History) -> str:
    """The agent's last words, without a traceback; if the harness stopped it, the exception is the harness's too."""
    ended, stopped = history.first(TurnEnded), history.first(StartMissed) is not None
    if ended is None:
        return ""
    spoken = [ended.error, ended.stderr, ended.stdout, ended.raised or ""]
    if ended.raised and ended.exit_code is not None:  # then it is our sentence: the process's own words say more
        spoken = [ended.stderr, ended.stdout, ended.error]
    if stopped and ended.raised:
        spoken = [ended.stderr, ended.stdout]
    spoken_words = (
        said.partition(STACK_BELOW)[0].partition(TRACE)[0] if stopped else exception_in(said) for said in spoken
    )
    text = next(filter(None, (" ".join(words.split()) for words in spoken_words)), "")
    return text if len(text) <= LAST_CHARS else f"… {text[-LAST_CHARS:].partition(' ')[2] or text[-LAST_CHARS:]}"
