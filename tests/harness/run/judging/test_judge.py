"""The judge: many invariants and everything of our own into one verdict, with a sentence that says why."""

from dataclasses import replace
from typing import Any

import pytest

from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.invariants import check
from wedgehog.harness.record.events.call import CallUnscripted, RequestRefused, ToolResult
from wedgehog.harness.record.events.fault import FaultFired, FaultUnproven
from wedgehog.harness.record.events.run import AgentStarted, SessionKept, Trouble
from wedgehog.harness.record.events.service import PageAsked
from wedgehog.harness.record.history import History
from wedgehog.harness.record.judgement import Judgement
from wedgehog.harness.record.verdict import error, fail, inconclusive, nothing, passed, worst
from wedgehog.harness.run.control import ControlFacts
from wedgehog.harness.run.judging.fault_doubts import fault_doubts
from wedgehog.harness.run.judging.judge import bounds, judge
from wedgehog.harness.scenario.model import Scenario
from wedgehog.harness.testing import HistoryBuilder
from wedgehog.harness.testing.history_builder import result

CONTROL = ControlFacts(True)


def scenario(**words: Any) -> Scenario:
    turns = [{"user": "Go on.", "model": [{"text": "Done {nonce}"}] * 2}]
    return Scenario.model_validate({"name": "told", "why": "Because.", "turns": turns, **words})


def agent(**words: Any) -> AgentSpec:
    return AgentSpec.model_validate({"name": "a", "wire": "anthropic", "command": ["agent", "{message}"], **words})


def judged(history: History, control: ControlFacts = CONTROL, of: Any = None, **words: Any) -> Judgement:
    return judge(history, scenario(**words), of or agent(), control)


def well(tell: HistoryBuilder) -> HistoryBuilder:
    """A turn that is answered."""
    tell.message()
    tell.answer_step(1)
    return tell.end()


def spent(tell: HistoryBuilder, calls: int) -> HistoryBuilder:
    """A turn that was paid that often for one step."""
    tell.message()
    for _ in range(calls - 1):
        tell.stall(tell.ask(), waits_s=1)
    tell.answer_step(1)
    return tell.end()


@pytest.mark.parametrize(("waits", "lacked"), [({"harness_s": 3.0}, True), ({"harness_s": 0.4}, False)])
def test_a_judgement_says_if_the_harness_lacked_processors(waits: dict[str, float], lacked: bool):
    """It answers the agent, so what failed then is doubtful, though the agent itself has waited for none."""
    tell = HistoryBuilder()
    tell.message()
    tell.reply(tell.ask(1), f"Done {tell.nonce}", took_s=10)
    tell.waited(0.0, for_s=5, **waits)
    assert judged(tell.end().seal()).lacked_processors is lacked


def with_event(history: History, *events: Any) -> History:
    """The same history with these events added."""
    more = History(events=history.events)
    for event in events:
        more.add(event)
    return more.seal()


TROUBLE = Trouble(what="the network failed")
UNSCRIPTED = CallUnscripted(call=1, why="turn 1 step 9")
FIRED = FaultFired(fault=0, name="cut", link="llm", turn=1, step=1, attempt=1, call=1, proof="counted")
CUT = {"faults": [{"at": {"byte": 5}, "do": "cut"}]}


def refusal(message: str = "bad field", *, scripted: bool = False, pairing: bool = False) -> RequestRefused:
    return RequestRefused(call=1, status=400, error="invalid", message=message, pairing=pairing, scripted=scripted)


# ---- the worst wins


def test_error_is_worse_than_fail_than_inconclusive_than_pass():
    """And of nothing at all comes nothing."""
    every = [nothing(), passed(), inconclusive("?"), fail("!", ()), error("x")]
    assert [worst(every[: n + 1]) for n in range(5)] == ["nothing", "pass", "inconclusive", "fail", "error"]
    assert worst([]) == "nothing"


def test_a_run_that_went_well_passes_and_says_how_its_turns_ended():
    """Stock invariants apply without being named."""
    judgement = judged(well(HistoryBuilder()).seal())
    assert (judgement.verdict, judgement.violated) == ("pass", ())
    assert judgement.says == "turn 1: answered"
    assert {"paid_call_bound", "turn_deadline", "error_surfaced"} <= {v.name for v in judgement.verdicts}


def test_a_violation_is_a_fail_that_names_its_invariant():
    """Thirteen paid calls of one step are allowed, the fourteenth is one too many."""
    assert judged(spent(HistoryBuilder(), 12).seal()).verdict == "pass"
    judgement = judged(spent(HistoryBuilder(), 14).seal(), of=agent(limits={}))
    assert (judgement.verdict, judgement.violated) == ("fail", ("paid_call_bound",))
    assert "14 times, 13 allowed" in judgement.says


@pytest.mark.parametrize("words", [{}, CUT])
def test_of_a_record_that_ends_before_its_run_does_nothing_good_can_be_said(words: dict[str, Any]):
    """Wherever it was torn off; and what it does not hold is missing for no other reason."""
    whole = well(well(HistoryBuilder())).seal().events
    for length in range(len(whole)):
        judgement = judged(History(events=whole[:length]).seal(), **words)
        assert (judgement.verdict, judgement.says) == ("inconclusive", "the record ends before the run does"), length


def test_of_a_record_with_a_hole_nothing_is_said():
    """Neither that all was well nor that something was not: what is missing may have been the cause, or the end."""
    for told in (well(well(HistoryBuilder())).seal().events, spent(HistoryBuilder(), 14).seal().events):
        for hole in range(len(told) - 1):
            judgement = judged(History(events=[*told[:hole], *told[hole + 1 :]]).seal())
            assert (judgement.verdict, judgement.says) == ("error", f"event {hole} is missing from the record")


def test_a_violation_in_a_record_that_was_torn_off_is_still_one():
    """What had happened by then has happened."""
    told = spent(HistoryBuilder(), 14).seal().events
    assert judged(History(events=told[:-1]).seal()).verdict == "fail"


def test_trouble_of_our_own_is_an_error_and_never_blamed_on_the_agent():
    """Though it is red besides, the run says first that it is worth nothing."""
    history = with_event(spent(HistoryBuilder(), 14).seal(), TROUBLE)
    judgement = judged(history)
    assert (judgement.verdict, judgement.says) == ("error", "the network failed")


def test_a_request_without_words_in_the_script_is_an_error():
    """Nobody knows what the model would have said."""
    judgement = judged(with_event(well(HistoryBuilder()).seal(), UNSCRIPTED))
    assert judgement.verdict == "error" and "turn 1 step 9" in judgement.says


def test_a_fail_outweighs_what_cannot_be_told():
    """A fault that never fired does not excuse what was seen."""
    judgement = judged(spent(HistoryBuilder(), 14).seal(), faults=[{"do": "cut"}, {"do": {"status": 429}}])
    assert judgement.verdict == "fail"
    assert "faults" in {verdict.name for verdict in judgement.verdicts if verdict.status == "inconclusive"}


def test_beside_a_fail_stands_why_a_correct_agent_may_never_meet_the_fault():
    """The scenario is not skipped then: of an agent that edits nothing "the fault never fired" alone would mislead."""
    edits = {"link": "chat", "at": {"chat": "edit"}, "do": {"chat_status": 429}}
    judgement = judged(spent(HistoryBuilder(), 14).seal(), faults=[{"do": "cut"}, edits])
    (doubt,) = (verdict for verdict in judgement.verdicts if verdict.name == "faults")
    assert judgement.verdict == "fail"
    assert doubt.says.startswith("the fault never fired: chat_status on chat")
    assert doubt.says.endswith("; in this run the agent changed no message that it had sent to its chat")


# ---- inconclusive


UPLOAD = {"faults": [{"at": {"phase": "request"}, "do": "stall"}]}


@pytest.mark.parametrize(
    ("makes_some", "came", "verdict"), [(True, False, "inconclusive"), (True, True, "pass"), (False, False, "pass")]
)
def test_of_an_agent_that_calls_beside_its_conversation_it_must_show_which_request_was_struck(
    makes_some: bool, came: bool, verdict: str
):
    """What was lost on its way cannot be looked at; when the main call comes and no title, it was that."""
    tell = HistoryBuilder()
    tell.message()
    if came:
        tell.reply(tell.ask(1, background="shape"), "A title")
    tell.answer_step(1)
    struck = replace(FIRED, name="stall", step=None, attempt=None, call=None)
    judgement = judged(with_event(tell.end().seal(), struck), ControlFacts(True, background=makes_some), **UPLOAD)
    assert judgement.verdict == verdict
    assert makes_some is came or "may have fired on a background call" in judgement.says


@pytest.mark.parametrize(("after", "verdict"), [(0, "inconclusive"), (1, "inconclusive"), (2, "pass")])
def test_a_request_is_the_conversations_where_the_control_run_made_no_other_so_early(after: int, verdict: str):
    """An agent that sums up long conversations makes no such call at its first messages."""
    tell = HistoryBuilder()
    tell.message()
    tell.answer_step(1)
    struck = replace(FIRED, name="stall", step=None, attempt=None, call=None)
    control = ControlFacts(True, background=True, background_after=after)
    assert judged(with_event(tell.end().seal(), struck), control, **UPLOAD).verdict == verdict


@pytest.mark.parametrize(
    ("later", "titled", "verdict"),
    [(False, True, "pass"), (True, True, "inconclusive"), (False, False, "inconclusive")],
)
def test_a_title_that_came_with_the_first_message_is_not_lost_in_a_later_turn(later: bool, titled: bool, verdict: str):
    """Unless the agent makes such calls in later turns too, or the title of this run has not come."""
    tell = HistoryBuilder()
    tell.message()
    if titled:
        tell.reply(tell.ask(1, background="title"), "A title")
    tell.answer_step(1)
    tell.end()
    tell.message()
    struck = replace(FIRED, name="cut", turn=2, step=None, attempt=None, call=None)
    tell.add(struck)
    tell.answer_step(1)
    control = ControlFacts(True, background=True, background_later=later)
    faults = [{"at": {"turn": 2, "phase": "request"}, "do": "cut"}]
    turns = [{"user": "Go on.", "model": [{"text": "Done {nonce}"}]}] * 2
    assert judged(tell.end().seal(), control, turns=turns, faults=faults).verdict == verdict


def test_a_fault_that_never_fired_makes_the_run_inconclusive():
    """And the sentence says which, where."""
    judgement = judged(well(HistoryBuilder()).seal(), **CUT)
    assert (judgement.verdict, judgement.says) == (
        "inconclusive",
        "the fault never fired: cut on llm at step 1 of turn 1",
    )


@pytest.mark.parametrize(("second", "doubts"), [("compaction", 0), ("background", 1)])
def test_after_a_summary_that_failed_an_agent_may_ask_for_none(second: str, doubts: int):
    """A second fault waits for a summary that never comes, and that is no doubt."""
    faults = [{"at": {"turn": turn, "on": on}, "do": {"status": 500}} for turn, on in ((1, "compaction"), (2, second))]
    turns = [{"user": "Hello?", "model": [{"text": "Yes. {nonce}"}]}] * 2
    plan = scenario(faults=faults, turns=turns).plan(1)
    history = with_event(well(well(HistoryBuilder())).seal(), replace(FIRED, name="status"))
    assert len(list(fault_doubts(history, plan, CONTROL))) == doubts


@pytest.mark.parametrize(
    ("at", "why"),
    [
        ({"byte": 10**6}, "; it waits for byte 1,000,000, and the reply's body had 200"),
        ({"byte": 199}, ""),
        ({"step": 3}, "; no request of step 3 of turn 1 arrived"),
        ({"attempt": 2}, "; that step was asked once, and the fault waits for attempt 2"),
        ({"turn": 2}, ""),
        ({"byte": 10**6, "on": "background"}, ""),
    ],
)
def test_a_fault_that_had_nothing_to_strike_says_so(at: dict[str, Any], why: str):
    """Beyond the reply's end, in a step or an attempt that never came: its author can move it."""
    turns = [{"user": "x", "model": [{"text": "Done {nonce}"}] * 3}, {"user": "y"}]
    judgement = judged(well(HistoryBuilder()).seal(), faults=[{"at": at, "do": "cut"}], turns=turns)
    where = f"step {at.get('step', 1)} of turn {at.get('turn', 1)}"
    assert judgement.says.split(": ", 1)[1] == f"cut on llm at {where}{why}"


def test_a_fault_at_the_write_of_a_session_that_was_not_seen_does_not_ask_for_files_that_the_spec_names():
    """The agent writes its file as its last act, and is gone at once."""
    faults = [{"link": "agent", "at": {"turn": 1, "session": "written"}, "do": {"kill": {"tear": True}}}]
    turns = [{"user": "x", "model": [{"text": "Done {nonce}"}]}, {"user": "y"}]
    kept = SessionKept(path="session.json", sha256="0", size=2)
    found = judged(with_event(well(HistoryBuilder()).seal(), kept), faults=faults, turns=turns)
    assert found.says.endswith("; no session file was seen to change before that turn was over")


def test_a_fault_at_the_write_of_a_session_says_that_there_was_none():
    """Most often the agent's files are elsewhere, and its spec does not say where."""
    faults = [{"link": "agent", "at": {"turn": 1, "session": "written"}, "do": {"kill": {"tear": True}}}]
    turns = [{"user": "x", "model": [{"text": "Done {nonce}"}]}, {"user": "y"}]
    found = judged(well(HistoryBuilder()).seal(), faults=faults, turns=turns)
    assert "no session file was written in that turn (the spec's `session_files` says where" in found.says


@pytest.mark.parametrize(("ready_s", "skipped"), [(0.5, True), (0.0, False)])
def test_an_agent_that_stays_may_keep_its_sessions_in_memory(ready_s: float, skipped: bool):
    """A program for each message has them in a file: there the spec does not say where."""
    started = AgentStarted(argv=("agent",), executable="/bin/agent", ready_s=ready_s)
    tears = [{"link": "agent", "at": {"turn": 1, "session": "written"}, "do": {"kill": {"tear": True}}}]
    found = judged(with_event(well(HistoryBuilder()).seal(), started), faults=tears)
    assert found.skipped.startswith("the agent stays, and wrote no session file in its turn") is skipped
    assert skipped or found.verdict == "inconclusive"


@pytest.mark.parametrize(("kind", "skipped"), [("thinking", True), ("image", True), ("tool_result", False)])
def test_a_poisoned_item_that_only_some_agents_send_is_skipped_where_it_was_not_sent(kind: str, skipped: bool):
    """Each agent sends its tools' results; not each sends pictures or earlier thoughts."""
    faults = [{"at": {"turn": 1, "step": 1}, "do": {"poison": kind}}]
    found = judged(well(HistoryBuilder()).seal(), faults=faults)
    assert found.skipped.startswith("no request carried such an item") is skipped
    assert skipped or found.verdict == "inconclusive"


def test_a_window_that_no_request_fills_does_not_apply():
    """An agent that keeps its conversation short is right, and so is one that keeps none."""
    window = {"at": {"turn": 1, "step": 1}, "do": {"window": {"more": 1400}}, "times": "always"}
    found = judged(well(HistoryBuilder()).seal(), faults=[window])
    assert found.skipped == "no request was longer than the window: the agent keeps its conversation short"


def test_a_missing_number_of_tokens_is_skipped_where_no_reply_would_have_it():
    """A stream of chat completions tells it only where the request asks for it."""
    found = judged(well(HistoryBuilder()).seal(), faults=[{"at": {"turn": 1, "step": 1}, "do": "no_usage"}])
    assert found.skipped == "the agent does not ask for the number of tokens, so no reply can lack it"


PAGES: dict[str, Any] = {
    "turns": [{"user": "Read it.", "model": [{"tool": "fetch", "args": {"url": "{web_url}/a"}}, {"text": "{nonce}"}]}],
    "web": {"/a": {"text": "It rained."}},
}

REFUSED = FaultFired(
    fault=0, name="refuse", link="tool:web", turn=1, step=None, attempt=None, call=None, proof="a probe was refused"
)


@pytest.mark.parametrize(
    ("met", "skipped"),
    [
        ((), True),
        ((PageAsked(path="/a", status=200),), False),
        ((REFUSED,), False),
    ],
)
def test_a_scenario_about_pages_is_skipped_where_the_agent_reads_none_of_this_machine(met: Any, skipped: bool):
    """A server that refuses connections is asked for no page either."""
    faults = (
        [{"link": "tool:web", "at": {"turn": 1, "phase": "connect"}, "do": "refuse"}] if met and not skipped else []
    )
    found = judged(with_event(well(HistoryBuilder()).seal(), *met), **PAGES, faults=faults)
    assert ("it may refuse addresses on this machine" in found.skipped) is skipped


def test_a_locked_database_is_skipped_where_there_is_none():
    """The fault found nothing to lock."""
    locks = [{"link": "agent", "at": {"turn": 1, "step": 1}, "do": "database_locked"}]
    assert judged(well(HistoryBuilder()).seal(), faults=locks).skipped.startswith("the agent has no SQLite database")


@pytest.mark.parametrize("do", [{"kill": {"whom": "tool"}}, {"freeze": {"whom": "tool", "for_s": 3}}])
@pytest.mark.parametrize(("ran_s", "skipped"), [(None, False), (0.6, False), (3.0, True)])
def test_a_command_that_runs_in_no_process_of_its_own_is_not_struck(do: Any, ran_s: float | None, skipped: bool):
    """One shell reads all commands from its stdin. A command that never ran, or was over before, tells nothing."""
    strikes = {"link": "agent", "at": {"turn": 1, "step": 1, "tool": 1, "when": "started", "after_s": 0.5}, "do": do}
    turns = [{"user": "Go on.", "model": [{"tool": "shell", "args": {"command": "sleep 9"}}, {"text": "{nonce}"}]}]
    tell = HistoryBuilder()
    tell.message()
    (token,) = tell.reply(tell.ask(1), tools=[True])
    ran = tell.runs(token, for_s=ran_s) if ran_s is not None else ToolResult(f"id-{token}", 20, True, token, False)
    tell.answer_step(2, [ran])
    found = judged(tell.end().seal(), faults=[strikes], turns=turns)
    assert found.skipped.startswith("the running command cannot be struck alone") is skipped
    assert skipped or found.verdict == "inconclusive"


def test_a_fault_that_fired_leaves_the_verdict_to_the_invariants():
    """Proof is all that is asked."""
    assert judged(with_event(well(HistoryBuilder()).seal(), FIRED), **CUT).verdict == "pass"


@pytest.mark.parametrize(("harness_s", "verdict"), [(1.8, "inconclusive"), (0.0, "pass")])
def test_a_call_that_a_busy_harness_answered_late_makes_no_pass(harness_s: float, verdict: str):
    """The agent gave it up and tried again: with a quick reply the fault might have struck."""
    tell = HistoryBuilder()
    tell.message()
    call = tell.ask(1)
    tell.wait(2.0).waited(0.0, for_s=2.0, harness_s=harness_s)
    tell.reply(call, how="hung up", delivered=0)
    tell.hangs_up(call).answer_step(1)
    assert judged(tell.end().seal()).verdict == verdict


def test_a_call_that_its_user_stopped_was_not_given_up_by_the_agent():
    """The reply began late, and the agent hung up because it was told to: no quicker reply would change that."""
    tell = HistoryBuilder()
    tell.message()
    call = tell.ask(1)
    tell.wait(0.2).waited(0.0, for_s=0.2, harness_s=0.2)
    tell.abort().reply(call, how="hung up", delivered=0)
    tell.hangs_up(call).end("", ended="aborted")
    tell.message()
    tell.answer_step(1)
    assert judged(tell.end().seal()).verdict == "pass"


def test_each_line_of_the_plan_must_fire():
    """The second one's proof is not the first one's."""
    two = {"faults": [*CUT["faults"], {"do": {"status": 429}}]}
    judgement = judged(with_event(well(HistoryBuilder()).seal(), FIRED), **two)
    assert judgement.says == "the fault never fired: status on llm at step 1 of turn 1"


def test_a_fault_whose_step_came_never_because_the_turn_ended_in_an_error_is_excused():
    """The agent said so and stopped: nothing was left to harm."""
    tell = HistoryBuilder()
    tell.message()
    tell.refuse(tell.ask(), 503)
    history = tell.fails().seal()
    assert judged(history, faults=[{"at": {"step": 2, "byte": 5}, "do": "cut"}]).verdict == "pass"


UNHARMED = "turn 1 was not answered before any fault fired: exit code 1: Error: the provider is overloaded"


@pytest.mark.parametrize("fires_later", [True, False])
def test_an_error_before_any_fault_struck_is_no_plain_pass(fires_later: bool):
    """Its user saw the error, and the scenario's fault has nothing to do with it: the run proves nothing."""
    tell = HistoryBuilder()
    tell.message()
    tell.reply(tell.ask(), "Let me see.")
    history = well(tell.fails()).seal()
    if fires_later:
        history = with_event(history, replace(FIRED, turn=2, call=2))
    turns = [{"user": "a", "model": [{"text": "x"}]}, {"user": "b", "model": [{"text": "x"}]}]
    judgement = judged(history, turns=turns, faults=[{"at": {"turn": 2}, "do": "cut"}])
    assert judgement.verdict == "inconclusive" and UNHARMED in judgement.says


def test_an_error_in_the_turn_that_a_fault_struck_is_a_pass():
    """So is one in a later turn, and one in a scenario that plans no fault."""
    tell = HistoryBuilder()
    tell.message()
    tell.reply(tell.ask(), "Let me see.")
    history = tell.fails().seal()
    assert judged(with_event(history, FIRED), **CUT).verdict == "pass"
    assert judged(history).verdict == "pass"


def test_an_error_in_another_turn_excuses_no_fault():
    """Turn 2 was played and its fault did not strike."""
    tell = HistoryBuilder()
    tell.message()
    tell.refuse(tell.ask(), 503)
    history = well(tell.fails()).seal()
    turns = [{"user": "a", "model": [{"text": "x"}]}, {"user": "b", "model": [{"text": "x"}]}]
    assert judged(history, turns=turns, faults=[{"at": {"turn": 2}, "do": "cut"}]).verdict == "inconclusive"


def test_an_invariant_that_the_scenario_names_must_have_something_to_judge():
    """Without tools there is no pairing; unnamed it is a dash, named it is the point of the scenario."""
    history = well(HistoryBuilder()).seal()
    assert judged(history).verdict == "pass"
    judgement = judged(history, invariants={"tool_deadline": {"tool_s": 5}})
    assert judgement.verdict == "inconclusive"
    assert judgement.says == "the scenario asks for tool_deadline: no tool call ran"


def test_an_invariant_that_is_switched_off_is_not_judged():
    """`off` with a reason."""
    history = spent(HistoryBuilder(), 14).seal()
    judgement = judged(history, invariants={"paid_call_bound": "off: it is about something else"})
    assert (judgement.verdict, judgement.violated) == ("pass", ())


def test_an_invariant_that_must_be_asked_for_is_judged_only_then():
    """An error that its user sees is enough, unless the scenario wants an answer."""
    tell = HistoryBuilder()
    tell.message()
    tell.refuse(tell.ask(), 503)
    history = tell.fails().seal()
    assert judged(history).verdict == "pass"
    assert judged(history, invariants={"turn_answered": {}}).violated == ("turn_answered",)


def _in_spite_of_a_stack() -> History:
    tell = HistoryBuilder()
    tell.message()
    tell.stall(tell.ask())
    tell.fails('Traceback (most recent call last):\n  File "a.py", line 1\nTimeoutError: timed out')
    return well(tell).seal()


STALLED: dict[str, Any] = {"faults": [{"at": {"turn": 1, "step": 1}, "do": {"stall": "forever"}}]}


def test_at_the_usual_level_what_is_only_strict_is_a_remark():
    """The run passes, and its reader learns what `strict` would say."""
    it = judged(_in_spite_of_a_stack(), **STALLED)
    assert (it.verdict, it.violated, it.strict) == ("pass", (), ("no_traceback", "turn_answered"))
    assert any(remark.startswith("no_traceback: turn 1") for remark in it.remarks)


@pytest.mark.parametrize("level", ["safe", "strict"])
def test_what_a_busy_machine_left_open_at_level_strict_is_said(level: str):
    """Without a word its reader would take it for a pass at that level too."""
    tell = HistoryBuilder()
    tell.message()
    tell.hangs_up(tell.ask(1))
    tell.abort()
    tell.wait(20)
    tell.waited(10.0, for_s=20)
    tell.end("", ended="aborted", exit_code=130)
    it = judged(well(tell).seal(), of=agent(level=level))
    remarked = [it for it in it.remarks if it.startswith("undecided at level strict: stops_when_told: turn 1 ended")]
    assert (it.verdict, it.strict, len(remarked)) == (("pass", (), 1) if level == "safe" else ("inconclusive", (), 0))


def test_at_level_strict_it_decides():
    """An error that passes has to be answered, and no user wants to read a stack."""
    it = judged(_in_spite_of_a_stack(), of=agent(level="strict"), **STALLED)
    assert (it.verdict, it.violated) == ("fail", ("no_traceback", "turn_answered"))


@pytest.mark.parametrize("level", ["safe", "strict"])
def test_a_search_asks_for_the_verdict_alone(level: str):
    """It is the same, without what only a reader wants to know."""
    history, words = _in_spite_of_a_stack(), scenario(**STALLED)
    whole = judge(history, words, agent(level=level), CONTROL)
    brief = judge(history, words, agent(level=level), CONTROL, briefly=True)
    assert (brief.remarks, brief.strict) == ((), whole.strict if level == "strict" else ())
    assert replace(brief, remarks=whole.remarks, strict=whole.strict) == whole


def test_harm_that_stays_needs_no_answer_at_any_level():
    """Without a provider there is no answer."""
    lasting = {"faults": [{"at": {"turn": 1, "step": 1}, "do": {"stall": "forever"}, "times": "always"}]}
    assert judged(_in_spite_of_a_stack(), of=agent(level="strict"), **lasting).violated == ("no_traceback",)


def test_a_specimen_is_judged_by_its_expectation_alone():
    """Its scenario names every violation."""
    it = judged(_in_spite_of_a_stack(), of=agent(level="strict"), expect={"a": "pass"}, **STALLED)
    assert it.as_expected and it.strict == ()


def test_no_request_in_time_is_inconclusive():
    """It may be the agent's start-up or ours; the control run passed."""
    tell = HistoryBuilder()
    tell.message()
    history = tell.start_missed().end("", ended="deadline", exit_code=None).seal()
    judgement = judged(history)
    assert "start" in {verdict.name for verdict in judgement.verdicts if verdict.status == "inconclusive"}


@pytest.mark.parametrize(
    ("refused", "known_to_control", "verdict"),
    [
        (refusal(), False, "inconclusive"),
        (refusal(), True, "pass"),
        (refusal(scripted=True), False, "pass"),
    ],
)
def test_our_validators_refusal_proves_nothing_unless_the_agent_sends_the_same_without_a_fault(
    refused: RequestRefused, known_to_control: bool, verdict: str
):
    """Our validator may be wrong; only refusals for pairing blame the agent."""
    history = with_event(well(HistoryBuilder()).seal(), refused)
    control = ControlFacts(True, refusals=frozenset({"bad field"} if known_to_control else ()))
    assert judged(history, control).verdict == verdict


@pytest.mark.parametrize(
    ("path", "says", "verdict"),
    [
        ("a.png", "Could not process image", "pass"),
        ("a.pdf", "The PDF specified was not valid.", "pass"),
        ("a.png", "bad field", "inconclusive"),
        ("a.txt", "Could not process image", "inconclusive"),
    ],
)
def test_the_refusal_of_a_picture_that_the_model_reads_is_part_of_its_story(path: str, says: str, verdict: str):
    """An agent may leave it out and go on."""
    history = with_event(well(HistoryBuilder()).seal(), refusal(says))
    reads = {"user": "Look.", "model": [{"tool": "read_file", "args": {"path": path}}, {"text": "I see. {nonce}"}]}
    assert judged(history, turns=[reads]).verdict == verdict


def test_a_refusal_of_an_empty_text_is_known_to_be_the_providers_own():
    """Many agents have met it, so that it is no matter of our validator's taste."""
    tell = HistoryBuilder()
    tell.message()
    tell.refuse(tell.ask(), 400, scripted=False, message="messages: text content blocks must be non-empty")
    history = tell.fails().seal()
    assert "validator" not in {verdict.name for verdict in judged(history).verdicts}
    assert check("turn_answered", history).status == "fail"


def test_a_refusal_for_pairing_blames_the_agent():
    """It is no matter of our validator's taste."""
    tell = HistoryBuilder()
    tell.message()
    tell.refuse(tell.ask(), 400, pairing=True, scripted=False)
    judgement = judged(tell.fails().seal())
    assert (judgement.verdict, judgement.violated) == ("fail", ("tool_call_pairing",))
    assert "validator" not in {verdict.name for verdict in judgement.verdicts}


def test_a_strike_without_proof_makes_the_run_inconclusive():
    """Another attempt's proof does not tell how much the agent got of this one."""
    unproven = FaultUnproven(fault=0, name="cut", call=2)
    judgement = judged(with_event(well(HistoryBuilder()).seal(), FIRED, unproven), **CUT)
    assert judgement.verdict == "inconclusive" and "call 2" in judgement.says


# ---- bounds


@pytest.mark.parametrize(
    ("given", "limits", "found"),
    [
        ({}, {}, {}),
        ({"per_step": 5}, {}, {"per_step": 5}),
        ({}, {"calls_per_turn": 8}, {"calls_per_turn": 8}),
        ({"calls_per_turn": 20}, {"calls_per_turn": 8}, {"calls_per_turn": 8}),
        ({"calls_per_turn": 3}, {"calls_per_turn": 8}, {"calls_per_turn": 3}),
        ({}, {"calls_without_progress": 4}, {"calls_without_progress": 4}),
        ({"calls_without_progress": 2}, {"calls_without_progress": 4}, {"calls_without_progress": 2}),
        ({}, {"tool_rounds": 3}, {}),
    ],
)
def test_a_specs_limits_tighten_a_bound_and_never_loosen_it(
    given: dict[str, Any], limits: dict[str, Any], found: dict[str, Any]
):
    """The smaller of both, each under the invariant that it belongs to."""
    assert bounds("paid_call_bound", given, agent(limits=limits), 1.0) == found


@pytest.mark.parametrize(("given", "most", "per_step"), [({}, 20, 19), ({}, 5, 12), ({"per_step": 3}, 20, 3)])
def test_calls_that_an_agent_states_may_all_be_of_one_step(given: dict[str, Any], most: int, per_step: int):
    """As one that tells a model twenty times to go on. A bound of the scenario stays."""
    limits = {"calls_per_turn": {"at_most": most, "why": "its README says so"}}
    found = bounds("paid_call_bound", given, agent(limits=limits), 1.0)
    assert (found["per_step"], found["calls_per_turn"]) == (per_step, most)
    many = judged(spent(HistoryBuilder(), 30).seal(), of=agent(limits=limits))
    assert (many.verdict, ".0 allowed" in many.says) == ("fail", False)


@pytest.mark.parametrize(
    ("name", "limit", "parameter"),
    [
        ("turn_deadline", "turn_s", "turn_s"),
        ("tool_round_bound", "tool_rounds", "tool_rounds"),
        ("tool_result_bound", "tool_result_chars", "tool_result_chars"),
        ("tool_deadline", "tool_s", "tool_s"),
        ("spend_bound", "usd_per_turn", "usd_per_turn"),
    ],
)
def test_every_limit_of_a_spec_reaches_an_invariant(name: str, limit: str, parameter: str):
    """A promise that is not checked would be worse than none."""
    assert bounds(name, {}, agent(limits={limit: 2}), 10.0) == {parameter: 2}


STATED = {"at_most": 80, "why": "its README says so"}


@pytest.mark.parametrize(
    ("given", "limit", "found"),
    [({}, 80, 50), ({}, 20, 20), ({}, STATED, 80), ({"tool_rounds": 5}, STATED, 5), ({"tool_rounds": 90}, STATED, 80)],
)
def test_only_a_limit_that_the_agent_states_with_a_reason_is_above_the_stock_bound(
    given: dict[str, Any], limit: Any, found: int
):
    """A scenario's own smaller bound still counts; the reason is a remark."""
    of = agent(limits={"tool_rounds": limit})
    assert bounds("tool_round_bound", given, of, 1.0) == {"tool_rounds": found}
    remarks = judged(well(HistoryBuilder()).seal(), of=of).remarks
    assert ("its own limit of tool_rounds is 80: its README says so" in remarks) is (limit is STATED)


def test_a_turn_that_ends_at_the_limit_that_its_agent_states_passes():
    """Sixty rounds are above the stock bound."""
    tell = HistoryBuilder()
    tell.message()
    results: list[ToolResult] = []
    for step in range(1, 61):
        (token,) = tell.reply(tell.ask(step, results=results), tools=[True])
        results.append(tell.runs(token, for_s=0.01))
    tell.answer_step(61, results)
    history = tell.end().seal()
    assert judged(history).violated == ("tool_round_bound",)
    assert judged(history, of=agent(limits={"tool_rounds": STATED})).verdict == "pass"


def test_a_scenarios_seconds_are_the_storys_and_a_specs_are_real():
    """150 s at thirtyfold speed are 5 s; the spec's own 4 s stay 4 s and are the smaller."""
    assert bounds("turn_deadline", {"turn_s": 150}, agent(), 30.0) == {"turn_s": 5}
    assert bounds("turn_deadline", {"turn_s": 150}, agent(limits={"turn_s": 4}), 30.0) == {"turn_s": 4}
    assert bounds("paid_call_bound", {"per_step": 5}, agent(), 30.0) == {"per_step": 5}


def test_a_tightened_bound_is_the_one_that_is_judged():
    """Five calls are within the stock bound and beyond what the spec promises."""
    history = spent(HistoryBuilder(), 5).seal()
    assert judged(history).verdict == "pass"
    assert judged(history, of=agent(limits={"calls_per_turn": 4})).violated == ("paid_call_bound",)
    assert judged(history, of=agent(limits={"calls_per_turn": 5})).verdict == "pass"


@pytest.mark.parametrize(("time_scale", "verdict"), [(1.0, "pass"), (30.0, "fail")])
def test_the_runs_time_scale_divides_the_scenarios_bound(time_scale: float, verdict: str):
    """Forty seconds are within 150, and not within 150/30 and the second that is ours."""
    tell = HistoryBuilder(time_scale=time_scale)
    tell.message()
    tell.reply(tell.ask(), f"Done {tell.nonce}", took_s=40)
    assert judged(tell.end().seal(), invariants={"turn_deadline": {"turn_s": 150}}).verdict == verdict


# ---- what was expected, what is known


@pytest.mark.parametrize(
    ("expect", "as_expected", "words"),
    [
        (None, None, ""),
        ("pass", False, "pass"),
        ("error", False, "error"),
        ({"fail": ["paid_call_bound"]}, True, "fail: paid_call_bound"),
        ({"fail": ["paid_call_bound", "turn_deadline"]}, False, "fail: paid_call_bound;turn_deadline"),
        ({"fail": ["turn_deadline"]}, False, "fail: turn_deadline"),
    ],
)
def test_an_expectation_is_met_by_exactly_its_violations(expect: Any, as_expected: bool | None, words: str):
    """One more or one less is not as expected."""
    expected = {} if expect is None else {"expect": {"a": expect}}
    judgement = judged(spent(HistoryBuilder(), 14).seal(), **expected)
    assert (judgement.as_expected, judgement.expected) == (as_expected, words)


@pytest.mark.parametrize(
    ("also", "waited_s", "verdict"),
    [([], 0.0, "fail"), (["turn_deadline"], 30.0, "inconclusive"), (["turn_deadline", "spend_bound"], 30.0, "fail")],
)
def test_an_expected_violation_that_could_not_be_judged_makes_the_run_inconclusive(
    also: list[str], waited_s: float, verdict: str
):
    """Only where nothing else is missing, and nothing came that was not expected."""
    tell = HistoryBuilder()
    tell.message()
    for _ in range(13):
        tell.stall(tell.ask())
    tell.wait(70).waited(waited_s, for_s=70)
    tell.answer_step(1)
    words = {"expect": {"a": {"fail": ["paid_call_bound", *also]}}, "invariants": {"turn_deadline": {"turn_s": 120}}}
    judgement = judged(tell.end().seal(), **words)
    assert judgement.violated == (("paid_call_bound",) if waited_s else ("paid_call_bound", "turn_deadline"))
    assert (judgement.verdict, judgement.as_expected) == (verdict, False)
    if verdict == "inconclusive":
        assert judgement.says.startswith("turn_deadline: turn 1 took 135") and "paid_call_bound: " in judgement.says
        assert judgement.overloaded and "for a processor" in judgement.says


def test_a_run_that_passed_where_red_was_expected_is_not_as_expected():
    """The specimen lost its mechanism."""
    judgement = judged(well(HistoryBuilder()).seal(), expect={"a": {"fail": ["paid_call_bound"]}})
    assert (judgement.verdict, judgement.as_expected) == ("pass", False)


def test_an_expected_error_or_inconclusive_must_violate_nothing():
    """`inconclusive` is met by an inconclusive run."""
    assert judged(well(HistoryBuilder()).seal(), **CUT, expect={"a": "inconclusive"}).as_expected is True


def test_a_failure_that_the_spec_knows_of_carries_its_reason():
    """The spec names the scenario; other scenarios are not excused."""
    known = agent(known={"told": "issue 7", "other": "issue 8"})
    assert judged(spent(HistoryBuilder(), 14).seal(), of=known).known == "issue 7"
    assert judged(spent(HistoryBuilder(), 14).seal(), of=agent(known={"other": "issue 8"})).known == ""


# ---- words


def test_several_of_the_worst_are_all_said_each_once():
    """A reader should not have to ask for the rest."""
    history = with_event(well(HistoryBuilder()).seal(), TROUBLE, TROUBLE, UNSCRIPTED)
    said = judged(history).says.split("; ")
    assert said[0] == "the network failed"
    assert len(said) == 2 and "no reply" in said[1]


def test_the_timer_whose_time_was_measured_is_named_and_not_the_one_that_is_quoted():
    """The client's 60 s are 5 here, and the call was held for the budget's 6.25."""
    timers = [{"name": "client", "s": 60, "says": "timed out"}, {"name": "budget", "s": 75}]
    tell = HistoryBuilder(time_scale=12)
    tell.message()
    tell.stall(tell.ask(), waits_s=6.2)
    remarks = judged(tell.fails("Error: the request timed out").seal(), of=agent(timeouts=timers)).remarks
    assert [remark[:44] for remark in remarks if "fired" in remark] == ["turn 1: its timer 'budget' (75 s; here 6.25 "]


def test_a_timer_may_speak_in_colours():
    """Some of them do in the middle of what they say."""
    tell = HistoryBuilder()
    tell.message()
    tell.stall(tell.ask(), waits_s=60)
    timers = [{"name": "idle", "s": 60, "says": "idle timeout"}, {"name": "other", "s": 60}]
    judgement = judged(tell.fails("\x1b[31midle\x1b[0m timeout").seal(), of=agent(timeouts=timers))
    assert any("its timer 'idle' (60 s; here 60 s) fired" in remark for remark in judgement.remarks)


def test_a_repair_that_was_logged_is_remarked():
    """Once per line, however often it was printed."""
    tell = HistoryBuilder()
    tell.message()
    tell.answer_step(1)
    tell.end(stderr="starting\nstripped 2 dangling calls\nstripped 2 dangling calls\n")
    remarks = judged(tell.seal()).remarks
    assert [remark for remark in remarks if "logged" in remark] == ["turn 1: it logged: stripped 2 dangling calls"]


@pytest.mark.parametrize(("shared", "said"), [((True, True), 1), ((False, False), 0)])
def test_output_that_turns_of_two_sessions_share_is_remarked_once(shared: tuple[bool, ...], said: int):
    tell = HistoryBuilder()
    for both in shared:
        tell.message()
        tell.answer_step(1)
        tell.end(stderr="warning: slow", shared=both)
    remarks = [remark for remark in judged(tell.seal()).remarks if "two sessions ran in one process" in remark]
    assert len(remarks) == said and all(remark.startswith("turn 1, turn 2: ") for remark in remarks)


def test_what_the_report_measured_stands_beside():
    """In the report's own words."""
    judgement = judged(well(HistoryBuilder()).seal(), report="elapsed=60002ms")
    assert judgement.report_number == "elapsed=60002ms"


@pytest.mark.parametrize(("heals", "violated"), [({}, ()), ({"heal": {"after_s": 0.1}}, ("turn_answered",))])
def test_a_disk_that_stays_full_needs_no_answer(heals: dict[str, Any], violated: tuple[str, ...]):
    """No second try within the turn finds room; only a disk that gets room again is harm that passes."""
    tell = HistoryBuilder()
    tell.message()
    tell.reply(tell.ask(1), f"Done {tell.nonce}")
    tell.fails("Error: the session cannot be saved: No space left on device")
    full = {"faults": [{"link": "agent", "at": {"turn": 1, "step": 1}, "do": "disk_full", **heals}]}
    it = judged(well(tell).seal(), of=agent(level="strict"), **full)
    assert it.strict == violated


def met(
    first_s: float, starts_s: float, *, alone_s: float = 5.0, waits_s: float = 0.0, replaced: bool = False
) -> History:
    """A second message comes in turn 1, which ends `first_s` later; the agent needs some time to start.

    `waits_s`: so long it waits for a processor before the first turn ends.
    """
    tell = HistoryBuilder()
    tell.message()
    tell.wait(alone_s).reply(tell.ask(), tools=[True])
    tell.message()
    if waits_s:
        tell.wait(first_s).waited(waits_s, for_s=first_s).goes_on(1).end().goes_on(2)
        tell.wait(starts_s - first_s).reply(tell.ask(), "Done {nonce}")
        return tell.end().seal()
    if starts_s < first_s:
        tell.wait(starts_s).reply(tell.ask(), "Done {nonce}")
        tell.wait(first_s - starts_s).goes_on(1).end().goes_on(2)
    else:
        tell.wait(first_s).goes_on(1)
        (tell.fails("Error: interrupted by a newer message") if replaced else tell.end()).goes_on(2)
        tell.wait(starts_s - first_s).reply(tell.ask(), "Done {nonce}")
    return tell.end().seal()


@pytest.mark.parametrize(
    ("history", "verdict"),
    [
        (met(4.0, 2.0), "pass"),
        (met(4.0, 6.0), "inconclusive"),
        (met(20.0, 21.0), "pass"),
        (met(4.0, 6.0, alone_s=0.5), "pass"),
        (met(0.0, 0.1, replaced=True), "pass"),
        (met(8.0, 15.0, waits_s=2.0), "pass"),
        (met(8.0, 15.0, waits_s=7.0), "inconclusive"),
    ],
)
def test_a_second_message_that_came_too_late_to_meet_the_first_proves_nothing(history: History, verdict: str):
    """An agent that waits with its request until the first turn has ended was there in time, and passes.

    So was one whose newer message takes the place of the first one, which ends in an error at once.
    """
    turns = [
        {"user": "a", "model": [[{"tool": "shell", "args": {"command": "sleep 4"}}], {"text": "x"}]},
        {"user": "b", "during": {"turn": 1, "step": 1, "tool": 1}, "model": [{"text": "x"}]},
    ]
    judgement = judged(history, turns=turns)
    assert judgement.verdict == verdict, judgement.says
    assert ("turn 2 did not meet turn 1" in judgement.says) is (verdict == "inconclusive")


@pytest.mark.parametrize(("asks", "verdict"), [(True, "pass"), (False, "inconclusive")])
def test_where_no_subagent_asked_the_model_a_story_of_subagents_proves_nothing(asks: bool, verdict: str):
    """Its tool may have failed at once: the main conversation went well, and no subagent ever ran."""
    tell = HistoryBuilder()
    tell.message()
    tell.reply(tell.ask(1), tools=[True])
    if asks:
        tell.reply(tell.ask(side="reader 1"), "It is empty.")
    tell.answer_step(2)
    turns = [{"user": "a", "model": [[{"tool": "subagent", "args": {"prompt": "Read the file."}}], {"text": "x"}]}]
    judgement = judged(tell.end().seal(), turns=turns)
    assert judgement.verdict == verdict, judgement.says
    assert ("no subagent asked the model" in judgement.says) is not asks


@pytest.mark.parametrize(("starts", "skipped"), [(True, False), (False, True)])
def test_where_subagents_cannot_start_others_a_story_about_that_is_skipped(starts: bool, skipped: bool):
    """They ended at once, for want of a tool, and the turn went well: nothing of the story was played."""
    tell = HistoryBuilder()
    tell.message()
    tell.reply(tell.ask(1), tools=[True])
    tell.reply(
        tell.ask(1, background="leader", side="leader 1"), "" if starts else "That is all.", tools=[True] * starts
    )
    if starts:
        tell.reply(tell.ask(1, background="reader", side="reader 1"), "It is empty.")
    tell.reply(tell.ask(2), f"Done {tell.nonce}")
    turns = [{"user": "a", "model": [[{"tool": "subagent", "args": {"prompt": "Let others look."}}], {"text": "x"}]}]
    told = [
        {"name": "leader", "when": {"opening": "Let"}, "model": [{"tool": "subagent", "args": {"prompt": "Read it."}}]},
        {"name": "reader", "when": {"opening": "Read"}, "model": [{"text": "It is empty."}]},
    ]
    judgement = judged(tell.end().seal(), turns=turns, conversations=told)
    assert (judgement.skipped == "in this run its subagents had no tool to start others") is skipped


@pytest.mark.parametrize("stops", [True, False])
def test_a_story_of_a_stopped_subagent_is_played_where_the_model_can_stop_it(stops: bool):
    """Then it need not have asked its model. Without the subagent's name the model has no way to stop it."""
    tell = HistoryBuilder()
    tell.message()
    tell.reply(tell.ask(1), tools=[True], name="task")
    begun = result("1.1.1", printed=False)
    if stops:
        tell.reply(tell.ask(2, results=[begun]), tools=[True], name="stop_agent")
        tell.answer_step(3, [begun, result("1.2.1", printed=False)])
    else:
        tell.answer_step(2, [begun])
    begins = {"tool": "subagent", "args": {"prompt": "Read the file.", "background": True}}
    turns = [{"user": "a", "model": [begins, {"tool": "subagent_stop"}, {"text": "x"}]}]
    judgement = judged(tell.end().seal(), turns=turns)
    assert judgement.verdict == ("pass" if stops else "nothing"), judgement.says
    told = "in this run the model was not told the name by which it can stop its subagent"
    assert judgement.skipped == ("" if stops else told)
