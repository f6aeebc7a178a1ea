"""Bugs of public reports, planted one by one: the catalogue sees each, and the agent without them passes."""

import sys
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from tests.live.together import AT_ONCE, JOBS, Found, entry, play
from wedgehog.harness.campaign.options import Options, usual_jobs
from wedgehog.harness.campaign.plan import World
from wedgehog.harness.campaign.selection import Entry
from wedgehog.harness.sandbox.disk import disk_unavailable_reason

SPEC = """\
name: {name}
wire: anthropic
command: ["{{python}}", {agent}, "{bugs}", "{{llm_url}}", "{{session_dir}}", "{tool_url}", "{{message}}"]
simulate: {agent}:simulate
session_files: ["{{session_dir}}/*.jsonl"]
abort: SIGINT
recover_s: 0
"""
TELLS = """\
answer: json:answer
usage: {input_tokens: json:usage.input_tokens, output_tokens: json:usage.output_tokens}
"""
MODELS = "models: [claude-sonnet-4-5, claude-opus-4-1]\n"
PLANTED = {
    "broken-event-once": ("skips-broken-events", {"truncation_noticed"}),
    "reply-has-only-thoughts": ("empty-is-an-answer", {"error_surfaced", "session_recovers"}),
    "reply-has-only-white-space": ("white-space-is-an-answer", {"error_surfaced", "session_recovers"}),
    "reply-begins-with-an-empty-part": ("keeps-an-empty-part", {"session_recovers", "turn_answered"}),
    "announced-call-is-missing": ("believes-the-reason", {"error_surfaced", "session_recovers"}),
    "thoughts-use-up-the-reply": (
        "asks-again-when-cut",
        {"paid_call_bound", "retry_discipline", "turn_deadline"},
    ),
    "answer-cut-by-a-filter": ("no-stop-reason", {"truncation_noticed"}),
    "announces-a-step-for-ever": ("tells-it-forty-times-to-go-on", {"paid_call_bound", "retry_discipline"}),
    "endless-tool-calls": ("ends-silently-at-its-limit", {"error_surfaced"}),
    "same-tool-call-for-ever": ("calls-a-loop-a-success", {"error_surfaced"}),
    "error-under-status-200": (
        "trusts-the-status,early-end-is-an-end,empty-is-an-answer",
        {"error_surfaced", "session_recovers"},
    ),
    "errors-in-other-forms": ("expects-an-error-object", {"no_false_cause"}),
    "many-tools-at-once": ("says-only-that-it-worked", {"tools_alive"}),
    "first-tool-ends-last": ("melts-calls-of-a-stream", {"whole_call_runs"}),
    "text-shows-a-tool-call": ("takes-examples-for-calls", {"tool_call_pairing", "session_recovers"}),
    "tool-ids-begin-again": ("takes-an-id-for-a-copy", {"tool_call_pairing", "session_recovers"}),
    "many-rounds-of-tools": ("keeps-the-last-nine", {"tool_call_pairing", "session_recovers"}),
    "thoughts-before-a-tool": ("says-it-twice", {"stored_once"}),
    "slow-but-alive": ("stores-its-answer-twice", {"stored_once"}),
    "long-answer": ("shows-four-thousand-characters", {"truncation_noticed"}),
    "twenty-messages": ("its-system-text-is-the-oldest-message", {"system_kept"}),
    "error-in-stream-inside-a-tool-call": ("keeps-half-arguments", {"whole_call_runs"}),
    "abort-in-a-later-turn": ("an-old-lock-resets", {"stop_forgets_nothing"}),
    "abort-before-the-next-tool": ("runs-the-queue-to-its-end", {"no_work_after_abort"}),
    "abort-among-tools": ("no-repair", {"tool_call_pairing", "session_recovers"}),
    "words-behind-a-call": ("the-last-part-decides", {"error_surfaced"}),
    "two-of-three-tools-do-not-exist": (
        "a-missing-tool-is-all-that-counts",
        {"tool_call_pairing", "session_recovers", "work_kept"},
    ),
    "rate-limited-until-a-date": ("dates-are-no-time", {"retry_discipline"}),
    "abort-in-silence": ("settles-for-ever", {"turn_deadline"}),
    "unknown-tool": ("unknown-tool-is-empty", {"missing_tool_told"}),
    "one-of-two-calls-is-broken": ("a-broken-call-ends-the-turn", {"work_kept"}),
    "command-fills-the-window": ("never-cuts", {"tool_result_bound"}),
    "server-error-always": ("stores-the-failure", {"session_recovers"}),
    "server-error-in-a-later-turn": ("loses-history-after-an-error", {"error_forgets_nothing"}),
    "connection-down": ("stays-down", {"session_recovers", "turn_deadline"}),
    "stream-lines-in-another-form": ("expects-one-form", {"turn_answered"}),
    "stream-with-other-fields": ("knows-all-events", {"turn_answered"}),
    "command-prints-nothing": (
        "empty-result-is-left-out",
        {"tool_call_pairing", "session_recovers", "tools_alive", "turn_answered"},
    ),
}
OF_A_KILL = {
    "killed-in-mid-write": ("torn-line-is-fatal", {"session_recovers"}),
    "killed-in-a-later-turn": ("an-old-lock-resets", {"stop_forgets_nothing"}),
}
OF_A_PIPE = {
    "command-prints-a-lot": ("reads-when-it-has-ended", {"output_read"}),
    "command-prints-many-errors": ("reads-one-pipe-first", {"output_read"}),
}
OF_A_DISK = {"disk-full-while-a-tool-runs": ("no-repair", {"tool_call_pairing", "session_recovers"})}
OF_A_SHELL = {"command-ends-with-its-text": ("one-shell-for-all", {"turn_deadline"})}
OF_A_LOST_CALL = {"abort-in-a-lost-mcp-call": ("runs-the-queue-to-its-end,no-tool-timer", {"turn_deadline"})}
OF_TOOLS = {
    "two-kinds-of-tools-at-once": ("one-kind-of-tool", {"turn_answered"}),
    "mcp-arguments-are-broken": ("broken-arguments-are-none", {"no_half_calls"}),
    "mcp-result-is-empty": ("reads-the-first-content", {"turn_answered"}),
    "mcp-call-gets-a-protocol-error": ("failure-ends-the-turn", {"turn_answered"}),
    "mcp-tool-name-with-a-dot": ("names-as-they-are", {"session_recovers"}),
    "mcp-tools-with-schemas-that-providers-refuse": ("schemas-as-they-are", {"session_recovers"}),
    "mcp-tools-with-unusual-schemas": ("expects-properties", {"turn_answered", "session_recovers"}),
}
STRICT = {
    "command-prints-nothing": ("asks-twice", {"asked_once"}),
    "server-error-once": ("each-try-adds-the-message", {"said_once"}),
    "first-tool-ends-last": ("one-call-of-several", {"calls_kept"}),
    "command-fails": ("no-words-of-a-failure", {"failure_told"}),
    "one-of-two-tools-fails": ("failure-looks-like-success", {"failure_told"}),
    "command-never-ends": ("a-stop-has-no-output", {"failure_told"}),
    "command-prints-a-lot": ("cuts-silently", {"cut_told"}),
    "server-error-after-tool-always": ("loses-history-after-an-error", {"history_kept"}),
    "key-refused": ("hides-the-cause", {"cause_told"}),
    "error-under-status-200": ("trusts-the-status", {"cause_told"}),
    "arguments-of-wrong-types": ("says-only-invalid", {"arguments_told"}),
    "connection-refused-always": ("hides-the-cause", {"cause_told"}),
    "text-looks-like-markup": ("remembers-only-words", {"rounds_kept"}),
    "rate-limited-for-some-tries": ("tries-twice", {"turn_answered"}),
    "error-in-stream-after-tool": ("drops-words", {"words_kept"}),
    "abort-twice": ("settles-for-long", {"stops_when_told"}),
    "abort-in-mid-tool": ("denies-that-it-ran", {"begun_told"}),
    "reset-after-tool-always": ("keeps-the-message-of-a-failed-turn-only", {"rounds_kept"}),
    "abort-in-mid-reply": ("forgets-a-stopped-turn", {"history_kept"}),
    "abort-leaves-nothing-running": ("kills-only-the-shell", {"stops_when_told"}),
    "killed-after-tool": ("stores-at-the-end", {"history_kept"}),
    "killed-before-a-turn-with-tools": ("restores-for-one-request", {"history_kept"}),
    "endless-tool-calls": ("ends-well-at-its-limit", {"exit_code_tells"}),
    "window-reached": ("never-compacts", {"session_goes_on"}),
    "message-is-refused": ("keeps-what-is-refused", {"session_goes_on"}),
    "tool-ids-begin-again": ("shows-each-step-longer", {"output_once"}),
}


SWITCHED = {
    "model-switched-in-a-session": ("switches", "switches,each-model-its-own-session"),
    "model-switched-after-a-thought": ("switches,thinks,keeps-foreign-thoughts", "switches,thinks"),
    "chosen-model-is-out-of-reach": ("switches,a-dead-model-stays", "switches"),
}
"""An agent that is red at `safe`, or the sound one; then one that is red at `strict`, or the sound one."""


def _pairs(planted: dict[str, tuple[str, set[str]]]) -> set[tuple[str, str]]:
    """Each scenario with the sound agent, and with the one that has its bug."""
    return {(scenario, bugs) for scenario in planted for bugs in ("none", planted[scenario][0])}


ASKS = "model-asks-its-user"
ASKING = {
    "asks": set(),
    "asks,a-question-ends-the-turn": set(),
    "asks,waits-for-its-user": {"turn_deadline"},
    "asks,a-question-ends-the-turn,asks-silently": {"error_surfaced"},
}
"""Agents with a tool for questions, and what is red."""
LED = "thoughts-before-a-tool"
STOPPED = "abort-in-mid-tool"
BEHIND = "abort-behind-a-thought"
DIES_BEHIND = "killed-behind-a-thought"
RESTORED = {(DIES_BEHIND, bugs) for bugs in ("none", "thinks", "thinks,repairs-without-signatures")}
KEEPS = "thinks,keeps-half-a-thought"
IN_A_THOUGHT = ("abort-in-mid-thought", "closed-in-mid-thought")
GOES_ON = "next-message-goes-on"
CUT = "call-cut-by-max-tokens"
READ = "closed-mid-reply"
PARTS = "reply-begins-with-an-empty-part"
LONG = "message-longer-than-the-window"
KILLED = {scenario: it for scenario, it in STRICT.items() if "killed" in scenario or "running" in scenario}
MORE = {
    *((LED, bugs) for bugs in ("thinks", "thinks,drops-thoughts")),
    (STOPPED, "a-stop-is-a-failure"),
    *((BEHIND, bugs) for bugs in ("none", "thinks", KEEPS, f"{KEEPS},loses-signatures-at-a-stop")),
    *((scenario, bugs) for scenario in IN_A_THOUGHT for bugs in ("thinks", "thinks,keeps-half-a-thought")),
    *((ASKS, bugs) for bugs in ("none", "asks,invents-an-answer", *ASKING)),
    *((CUT, bugs) for bugs in ("answers-cut-calls", "answers-cut-calls,hides-the-cut")),
    ("reply-takes-minutes", "no-total-timer"),
    ("reply-takes-minutes", "none"),
    ("model-switched-in-a-session", "none"),
    *((GOES_ON, bugs) for bugs in ("none", "named", "named,begins-again", "begins-again")),
    *((scenario, bugs) for scenario, (safe, strict) in SWITCHED.items() for bugs in ("switches", safe, strict)),
    *((READ, bugs) for bugs in ("shows-as-it-comes", "shows-as-it-comes,loses-what-was-read")),
    (PARTS, "shows-the-first-part"),
    *((LONG, bugs) for bugs in ("none", "never-compacts")),
    ("error-in-stream-after-tool", "tells-usage"),
    ("error-in-stream-after-tool", "tells-usage,counts-the-last-reply"),
}
PAGED = "command-opens-a-pager"
TERMINALS = {(PAGED, bugs) for bugs in ("none", "one-terminal-for-all", "one-terminal-for-all,pages-with-cat")}
SIMULATED = _pairs(PLANTED) | (_pairs(STRICT) - _pairs(KILLED)) | MORE
REFUSED = "mcp-picture-is-refused"
PICTURES = {(REFUSED, bugs) for bugs in ("none", "takes-images", "takes-images,keeps-images")}
WHY = "mcp-tool-says-why-it-failed"
REASONS = {(WHY, bugs) for bugs in ("none", "no-words-of-a-failure")}


@pytest.fixture(scope="module")
def judged(simulating_python: str, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Plays pairs of a scenario and an agent, all in one campaign of this process."""

    def judge(
        pairs: Iterable[tuple[str, str]], world: World, python: str = sys.executable, turn_s: float | None = None
    ) -> Found:
        folder = tmp_path_factory.mktemp("planted")
        entries = [
            _entry(folder, *pair, with_tools=pair[0] in {*OF_TOOLS, *OF_A_LOST_CALL, REFUSED, WHY})
            for pair in sorted(pairs)
        ]
        jobs = AT_ONCE if world == "live" else usual_jobs()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                "wedgehog.harness.run.simulated.sim_player.sys", SimpleNamespace(executable=simulating_python)
            )
            for module in ("agents.surroundings", "services.mcp.host"):
                patch.setattr(f"wedgehog.harness.{module}.sys", SimpleNamespace(executable=python))
            return play(entries, Options(folder / "runs", world=world, jobs=jobs, turn_s=turn_s))

    return judge


def _entry(folder: Path, scenario: str, bugs: str, *, with_tools: bool) -> Entry:
    """A scenario of the catalogue with an agent; `with_tools`: the agent uses our host of tools."""
    path = folder / f"{bugs.replace(',', '-')}{'-tools' * with_tools}.yaml"
    tool_url = "{tool_url}" if with_tools else "-"
    agent, words = Path(__file__).with_name("plantable.py"), bugs.replace("switches", "model={model}")
    words = words.replace("named", "session={session}")
    spec = SPEC.format(name=path.stem, bugs=words, agent=agent, tool_url=tool_url)
    spec += "tools: http\n" * with_tools + TELLS * ("tells-usage" in bugs) + MODELS * ("switches" in bugs)
    path.write_text(spec)
    return entry(scenario, path)


@pytest.fixture(scope="module")
def simulated(judged: Any) -> Found:
    """All that virtual time can play."""
    return judged(SIMULATED, "sim")


@pytest.fixture(scope="module")
def with_tools(judged: Any, warm_python: str) -> Found:
    """The host of the tools is a process, so this is the live world."""
    return judged(_pairs(OF_TOOLS) | PICTURES | REASONS, "live", warm_python)


@pytest.fixture(scope="module")
def processes(judged: Any) -> Found:
    """A kill, a full disk and a pipe need a process, so this is the live world."""
    return judged(_pairs(KILLED) | _pairs(OF_A_DISK) | _pairs(OF_A_KILL) | _pairs(OF_A_PIPE) | RESTORED, "live")


@pytest.fixture(scope="module")
def shells(judged: Any, warm_python: str) -> Found:
    """The bug waits for ever: a short bound of a turn, which all agents of a campaign share."""
    return judged(_pairs(OF_A_SHELL) | _pairs(OF_A_LOST_CALL), "live", warm_python, turn_s=10.0)


@pytest.fixture(scope="module")
def terminals(judged: Any) -> Found:
    """A terminal needs a process too."""
    return judged(TERMINALS, "live")


@pytest.mark.parametrize("scenario", sorted(PLANTED))
def test_a_planted_bug_is_red_and_the_sound_agent_green(simulated: Found, scenario: str):
    """In virtual time; exactly the invariants that the survey names."""
    bugs, red = PLANTED[scenario]
    assert _safe(simulated, scenario, "none") == ("pass", set())
    assert _safe(simulated, scenario, bugs.replace(",", "-")) == ("fail", red)


def test_an_empty_part_before_the_answer_is_not_all_of_it(simulated: Found):
    """The user would read an empty line."""
    assert _safe(simulated, PARTS, "shows-the-first-part") == ("fail", {"error_surfaced", "turn_answered"})


@pytest.mark.parametrize("scenario", sorted(OF_A_DISK))
def test_a_planted_bug_is_red_where_the_disk_is_full(processes: Found, scenario: str):
    """The call is stored and its result is not, as after a kill; but the process lives and can say so."""
    if why := disk_unavailable_reason():
        pytest.skip(why)
    bugs, red = OF_A_DISK[scenario]
    assert _safe(processes, scenario, "none") == ("pass", set())
    assert _safe(processes, scenario, bugs) == ("fail", red)


@pytest.mark.parametrize("scenario", sorted(OF_A_KILL))
def test_a_planted_bug_is_red_after_a_kill(processes: Found, scenario: str):
    """The sound agent writes its session anew when it loads it, and appends then: such a file can be torn."""
    bugs, red = OF_A_KILL[scenario]
    assert _safe(processes, scenario, "none") == ("pass", set())
    assert _safe(processes, scenario, bugs) == ("fail", red)


@pytest.mark.parametrize("scenario", sorted(OF_A_SHELL))
def test_a_planted_bug_is_red_where_a_command_needs_a_real_shell(shells: Found, scenario: str):
    """Words behind a here-document hide its end from the shell, which waits for more."""
    bugs, red = OF_A_SHELL[scenario]
    assert _safe(shells, scenario, "none") == ("pass", set())
    assert _safe(shells, scenario, bugs) == ("fail", red)


def test_a_stop_that_waits_for_a_tool_which_never_answers_is_red(shells: Found):
    """The agent has no timer for its tools, so that nothing but the stop could end the turn."""
    ((scenario, (bugs, red)),) = OF_A_LOST_CALL.items()
    assert _safe(shells, scenario, "none-tools") == ("pass", set())
    assert _safe(shells, scenario, f"{bugs.replace(',', '-')}-tools") == ("fail", red)


def test_a_thought_must_outlive_a_kill_as_it_came(processes: Found):
    """What closes the open call must not touch the thought before it; an agent that keeps no thoughts passes."""
    assert [_safe(processes, DIES_BEHIND, it) for it in ("none", "thinks")] == [("pass", set())] * 2
    found = _safe(processes, DIES_BEHIND, "thinks-repairs-without-signatures")
    assert found == ("fail", {"thoughts_kept", "session_recovers"})


@pytest.mark.parametrize("scenario", sorted(OF_A_PIPE))
def test_a_planted_bug_is_red_where_a_pipe_is_full(processes: Found, scenario: str):
    """The agent waits for a command, which waits for the agent; a pipe of virtual time is never full."""
    bugs, red = OF_A_PIPE[scenario]
    assert _safe(processes, scenario, "none") == ("pass", set())
    assert _safe(processes, scenario, bugs) == ("fail", red)


def test_a_command_that_is_typed_into_a_pager_is_red_at_level_strict(terminals: Found):
    """An agent passes that gives its commands no terminal, or a pager that does not wait."""
    assert _strict(terminals, PAGED, "none") == ("pass", set())
    assert _strict(terminals, PAGED, "one-terminal-for-all-pages-with-cat") == ("pass", set())
    assert _strict(terminals, PAGED, "one-terminal-for-all") == ("pass", {"next_command_runs"})


@pytest.mark.parametrize("scenario", sorted(OF_TOOLS))
def test_a_planted_bug_with_tools_of_a_server_is_red(with_tools: Found, scenario: str):
    """In the live world."""
    bugs, red = OF_TOOLS[scenario]
    assert _safe(with_tools, scenario, "none-tools") == ("pass", set())
    assert _safe(with_tools, scenario, f"{bugs}-tools") == ("fail", red)


@pytest.mark.parametrize("scenario", sorted(STRICT))
def test_a_planted_bug_of_a_lesser_kind_is_red_at_level_strict_only(request: pytest.FixtureRequest, scenario: str):
    """The sound agent is green at both levels."""
    found: Found = request.getfixturevalue("processes" if scenario in KILLED else "simulated")
    bugs, red = STRICT[scenario]
    assert _strict(found, scenario, "none") == ("pass", set())
    assert _strict(found, scenario, bugs) == ("pass", red)


def test_a_stop_that_counts_as_a_failure_of_its_tool_is_red_at_level_strict(simulated: Found):
    """One more request goes out at once; the sound agent makes none."""
    assert _strict(simulated, STOPPED, "a-stop-is-a-failure") == ("pass", {"stops_when_told"})


def test_the_result_of_a_call_that_was_cut_says_so(simulated: Found):
    """Without that the model sends the same long call again."""
    assert _strict(simulated, CUT, "answers-cut-calls") == ("pass", set())
    assert _strict(simulated, CUT, "answers-cut-calls-hides-the-cut") == ("pass", {"cut_call_told"})


def test_a_picture_that_is_refused_must_not_stay_in_the_session(with_tools: Found):
    """An agent that puts words in its place goes on; one that keeps it is refused for ever; one without is skipped."""
    assert _strict(with_tools, REFUSED, "takes-images-tools") == ("pass", set())
    assert _strict(with_tools, REFUSED, "takes-images-keeps-images-tools") == ("pass", {"session_goes_on"})
    assert with_tools[REFUSED, "none-tools"].skipped.startswith("no request carried such an item")


def test_why_a_tool_of_a_server_failed_reaches_the_model(with_tools: Found):
    """The server's own words are in the result."""
    assert _strict(with_tools, WHY, "none-tools") == ("pass", set())
    assert _strict(with_tools, WHY, "no-words-of-a-failure-tools") == ("pass", {"failure_told"})


@pytest.mark.parametrize("scenario", IN_A_THOUGHT)
def test_half_a_thought_in_the_session_is_red(simulated: Found, scenario: str):
    """It has no signature, and the provider refuses it with each later message."""
    assert _strict(simulated, scenario, "thinks") == ("pass", set())
    red = {"session_recovers", "thoughts_kept"}
    assert _safe(simulated, scenario, "thinks-keeps-half-a-thought") == ("fail", red)


@pytest.mark.parametrize("bugs", ["none", "thinks", KEEPS])
def test_a_whole_thought_before_half_an_answer_may_be_kept_or_not(simulated: Found, bugs: str):
    """It is signed, so the provider takes it."""
    assert _strict(simulated, BEHIND, bugs.replace(",", "-")) == ("pass", set())


def test_a_whole_thought_that_loses_its_signature_at_a_stop_is_red(simulated: Found):
    """The provider refuses each later message."""
    red = {"session_recovers", "thoughts_kept"}
    assert _safe(simulated, BEHIND, "thinks-keeps-half-a-thought-loses-signatures-at-a-stop") == ("fail", red)


def test_a_tool_call_that_comes_back_without_its_thought_is_red(simulated: Found):
    """The provider refuses its result, and the agent can never use a tool."""
    assert _strict(simulated, LED, "thinks") == ("pass", set())
    assert _safe(simulated, LED, "thinks-drops-thoughts") == ("fail", {"thoughts_kept"})


def test_another_model_must_take_the_conversation_over_and_not_its_thoughts(simulated: Found):
    """Of an agent whose spec names two models; without, it is skipped. A dead model must not stay chosen."""
    here, thought, gone = SWITCHED
    assert simulated[here, "none"].skipped == "the spec does not say how its user chooses another model (models)"
    assert [_strict(simulated, it, "switches") for it in (here, gone)] == [("pass", set())] * 2
    assert _strict(simulated, here, "switches-each-model-its-own-session") == ("pass", {"history_kept"})
    assert _strict(simulated, thought, "switches-thinks") == ("pass", set())
    assert _safe(simulated, thought, "switches-thinks-keeps-foreign-thoughts") == ("fail", {"turn_answered"})
    assert _safe(simulated, gone, "switches-a-dead-model-stays") == ("fail", {"session_recovers"})


@pytest.mark.parametrize("bugs", sorted(ASKING))
def test_a_question_of_the_model_must_not_hang_or_vanish_where_no_user_is(simulated: Found, bugs: str):
    """The model may be told that no answer comes, or the question ends the turn. Without such a tool it is skipped."""
    red = ASKING[bugs]
    assert _safe(simulated, ASKS, bugs.replace(",", "-")) == ("fail" if red else "pass", red)
    assert simulated[ASKS, "none"].skipped == "the agent advertises no tool ask_user"


def test_an_answer_that_no_user_gave_is_red_at_level_strict(simulated: Found):
    """The model takes it for its user's word."""
    assert _strict(simulated, ASKS, "asks") == ("pass", set())
    assert _strict(simulated, ASKS, "asks-invents-an-answer") == ("pass", {"no_invented_answer"})


def test_a_session_that_begins_again_without_a_failure_is_red_where_the_spec_names_it(simulated: Found):
    """Without a name no session is promised, and the scenario is skipped."""
    assert [_strict(simulated, GOES_ON, it) for it in ("none", "named")] == [("pass", set())] * 2
    assert _safe(simulated, GOES_ON, "named-begins-again") == ("fail", {"session_remembers"})
    assert simulated[GOES_ON, "begins-again"].skipped == "the agent does not continue a session"


def test_words_that_its_user_has_read_of_a_broken_reply_must_stay_in_the_conversation(simulated: Found):
    """The agent prints each piece as it comes, and the turn ends in an error."""
    assert _strict(simulated, READ, "shows-as-it-comes") == ("pass", set())
    assert _strict(simulated, READ, "shows-as-it-comes-loses-what-was-read") == ("pass", {"words_kept"})


def test_a_message_that_is_longer_than_the_window_must_not_stay_in_the_session(simulated: Found):
    """An agent that drops results finds none here and keeps the message; one that takes it back goes on."""
    assert _strict(simulated, LONG, "none") == ("pass", {"session_goes_on"})
    assert _strict(simulated, LONG, "never-compacts") == ("pass", set())


def test_a_count_of_the_last_reply_alone_is_red_at_level_strict(simulated: Found):
    """The agent tells its user what the turn took; its broken try may be in it or not."""
    assert _strict(simulated, "error-in-stream-after-tool", "tells-usage") == ("pass", set())
    found = _strict(simulated, "error-in-stream-after-tool", "tells-usage-counts-the-last-reply")
    assert found == ("pass", {"usage_told"})


def test_a_timer_over_the_whole_reply_is_red_at_level_strict_where_a_reply_takes_minutes(simulated: Found):
    """Each try is cut by it; a timer of silence alone lets the reply come."""
    assert _strict(simulated, "reply-takes-minutes", "no-total-timer") == ("pass", set())
    assert _strict(simulated, "reply-takes-minutes", "none") == ("pass", {"turn_answered"})


SERVED = """\
name: {name}-service
wire: anthropic
http:
  start: ["{{python}}", {agent}, "{bugs}", "{{llm_url}}", "{{session_dir}}", "{{port}}"]
  ready: /ready
  url: /message
  body: {{text: "{{message}}", id: "{{message_id}}"}}
  answer: json:answer
  error: json:error
recover_s: 0
"""


def test_a_front_end_that_goes_away_must_not_leave_an_open_call_or_a_busy_session(wedgehog: Any, tmp_path: Path):
    """The service stops its turn; what it has stored by then is closed before the next message, or is refused."""
    away = ("front-end-goes-away-in-mid-tool", "front-end-goes-away-in-mid-reply")
    assert _served(wedgehog, tmp_path, away, ("none", "no-repair", "stays-busy")) == {
        (away[0], "none-service"): "",
        (away[1], "none-service"): "",
        (away[0], "no-repair-service"): "session_recovers;tool_call_pairing",
        (away[1], "no-repair-service"): "",
        (away[0], "stays-busy-service"): "session_recovers",
        (away[1], "stays-busy-service"): "session_recovers",
    }


def test_a_message_that_waits_for_a_turn_that_fails_must_not_be_lost(wedgehog: Any, tmp_path: Path):
    """The service plays one message at a time; with the bug it answers what has waited with nothing."""
    waits, sound, bug = "second-message-while-it-stalls", "hasty,tries-twice", "hasty,tries-twice,drops-what-waits"
    found = _served(wedgehog, tmp_path, [waits], [sound, bug])
    assert found == {
        (waits, "hasty-tries-twice-service"): "",
        (waits, "hasty-tries-twice-drops-what-waits-service"): "error_surfaced",
    }


def test_a_message_that_waits_for_a_turn_that_is_stopped_must_not_be_lost(wedgehog: Any, tmp_path: Path):
    """The stop is for the turn that runs; the sound service answers the other message then."""
    waits = "abort-while-a-message-waits"
    found = _served(wedgehog, tmp_path, [waits], ["none", "drops-what-waits"])
    assert found == {(waits, "none-service"): "", (waits, "drops-what-waits-service"): "error_surfaced"}


def test_a_message_that_follows_at_once_on_a_stop_must_not_be_lost(wedgehog: Any, tmp_path: Path):
    """A stop takes a second; the service answers the message, or says that it is busy."""
    follows, sound, bug = "abort-then-a-message-at-once", ("none", "refuses-while-it-stops"), "drops-while-it-stops"
    found = _served(wedgehog, tmp_path, [follows], [*sound, bug])
    assert found.pop((follows, f"{bug}-service")) == "error_surfaced"
    assert found == dict.fromkeys([(follows, f"{it}-service") for it in sound], "")


def test_a_message_that_comes_again_with_its_id_must_not_be_done_again(wedgehog: Any, tmp_path: Path):
    """While its command runs, and after its answer. A service may also give both the same answer."""
    again = ("message-comes-twice", "message-comes-twice-while-busy")
    assert _served(wedgehog, tmp_path, again, ("none", "joins", "forgets-ids")) == {
        **{(it, f"{sound}-service"): "" for it in again for sound in ("none", "joins")},
        (again[0], "forgets-ids-service"): "handled_once",
        (again[1], "forgets-ids-service"): "handled_once",
    }


def _served(
    wedgehog: Any, folder: Path, scenarios: Iterable[str], planted: Iterable[str]
) -> dict[tuple[str, str], str]:
    """What is violated by services with these bugs."""
    words = []
    for bugs in planted:
        agent, name = Path(__file__).with_name("plantable_service.py"), bugs.replace(",", "-")
        (folder / f"{name}.yaml").write_text(SERVED.format(name=name, bugs=bugs, agent=agent))
        words += ["--agent", f"{name}.yaml"]
    wedgehog("run", *scenarios, *words, "--network", "embedded", JOBS)
    rows = pd.read_csv(folder / "runs" / "latest" / "summary.csv", keep_default_na=False)
    return {(row.scenario, row.agent): row.violated for row in rows.itertuples()}


def _safe(found: Found, scenario: str, agent: str) -> tuple[str, set[str]]:
    it = found[scenario, agent]
    return it.verdict, set(it.violated)


def _strict(found: Found, scenario: str, agent: str) -> tuple[str, set[str]]:
    it = found[scenario, agent]
    return it.verdict, set(it.strict)
