"""Judges a run: its invariants give one verdict (error > fail > inconclusive > pass) and a sentence that says why."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from wedgehog.fake_llm.script.file_tools import READ_FILE, is_picture
from wedgehog.fake_llm.script.roles import names_stop
from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.agents.spec_keys import StatedLimit
from wedgehog.harness.faults.reply_fault import ReplyFault
from wedgehog.harness.invariants import check, find, known
from wedgehog.harness.invariants.overload import answered_late
from wedgehog.harness.invariants.requests.side_call_bound import within
from wedgehog.harness.invariants.scope import is_doubtful, together
from wedgehog.harness.record.events.call import CallUnscripted, RequestRefused
from wedgehog.harness.record.events.run import Trouble
from wedgehog.harness.record.events.turn import PermissionAsked
from wedgehog.harness.record.history import History
from wedgehog.harness.record.judgement import Judgement
from wedgehog.harness.record.turn_outcome import outcome_of
from wedgehog.harness.record.verdict import Verdict, error, inconclusive, worst
from wedgehog.harness.run.control import ControlFacts
from wedgehog.harness.run.judging.fault_doubts import fault_doubts
from wedgehog.harness.run.judging.never_met import why_never_met
from wedgehog.harness.run.judging.remarks import remarks
from wedgehog.harness.run.judging.too_late_to_meet import too_late_to_meet
from wedgehog.harness.run.judging.unplayed import unplayed
from wedgehog.harness.run.watching.cpu_wait import lacked_processors
from wedgehog.harness.scenario.expect import Expect, FailConfig, expected_words, meets
from wedgehog.harness.scenario.fault_config import FaultConfig
from wedgehog.harness.scenario.model import Scenario

_PICTURE = re.compile(r"image|picture|pdf|document", re.IGNORECASE)
LIMITS = {
    "turn_s": "turn_deadline",
    "calls_per_turn": "paid_call_bound",
    "calls_without_progress": "paid_call_bound",
    "tool_rounds": "tool_round_bound",
    "tool_result_chars": "tool_result_bound",
    "tool_s": "tool_deadline",
    "usd_per_turn": "spend_bound",
    "tokens_per_turn": "spend_bound",
}
"""A spec's limits, by the invariant whose parameter of the same name they tighten."""
CONSEQUENCES = ("session_recovers", "turn_answered", "error_surfaced", "no_spend_after_abort")
"""Named last: they are more often the consequence of another violation than its cause."""


def judge(
    history: History, scenario: Scenario, agent: AgentSpec, control: ControlFacts, *, briefly: bool = False
) -> Judgement:
    """The judgement of one run (the caller adds where it lies and how it is replayed).

    `briefly`: without remarks, among them what fails only at level `strict`: a twentieth of a search.
    """
    expect = scenario.expect.get(agent.name)
    skipped = why_never_met(history, scenario)
    asked = expect is None and (agent.level == "strict" or not briefly)
    strict = [*_strict(history, scenario, agent)] if asked else []
    counted = strict if agent.level == "strict" else []
    invariants = [*_invariants(history, scenario, agent), *_bounded(history, scenario)]
    verdicts = [*invariants, *counted, *_own(history, scenario, control)]
    if skipped and not any(verdict.status in ("fail", "error") for verdict in verdicts):
        return unplayed(scenario, agent, history.run.network, skipped=skipped)
    verdicts.extend(_answered_late(history, verdicts))
    violated = _violated(verdicts)
    in_doubt = _in_doubt(expect, violated, verdicts)
    status = "inconclusive" if in_doubt else worst(verdicts)
    return Judgement(
        scenario=scenario.name,
        agent=agent.name,
        network=history.run.network,
        verdict="pass" if status == "nothing" else status,
        violated=violated,
        expected=expected_words(expect),
        as_expected=None if expect is None else meets(expect, "pass" if status == "nothing" else status, violated),
        says="; ".join([*(f"{v.name}: {v.says}" for v in in_doubt), _says(history, verdicts)]),
        known=agent.known.get(scenario.name, ""),
        verdicts=tuple(verdicts),
        level=agent.level,
        strict=_violated(strict),
        remarks=() if briefly else _remarks(history, agent, verdicts, [] if counted else strict),
        lacked_processors=lacked_processors(history),
        report_number=scenario.report,
    )


def _bounded(history: History, scenario: Scenario) -> Iterator[Verdict]:
    """The bounds that the scenario gives its conversations."""
    for said in scenario.conversations:
        if said.bounds.paid_calls is not None or said.bounds.attempts is not None:
            found = within(history, said.name, said.bounds.paid_calls, said.bounds.attempts)
            yield together(found).named("side_call_bound")


def _answered_late(history: History, verdicts: list[Verdict]) -> Iterator[Verdict]:
    """No pass where the agent gave up a call that the harness had not begun to answer."""
    if worst(verdicts) in ("pass", "nothing") and (late := answered_late(history, history.calls)):
        yield inconclusive(late, (), overload=True).for_reason("overload")


def _remarks(history: History, agent: AgentSpec, verdicts: list[Verdict], uncounted: list[Verdict]) -> tuple[str, ...]:
    open_ones = [verdict for verdict in uncounted if verdict.status == "inconclusive"]
    return (
        *remarks(history, agent, verdicts),
        *(f"{v.name}: {v.says}" for v in _failed(uncounted)),
        *(f"undecided at level strict: {v.name}: {v.says}" for v in open_ones),
    )


def _failed(verdicts: list[Verdict]) -> list[Verdict]:
    return [verdict for verdict in verdicts if verdict.status == "fail"]


def _violated(verdicts: list[Verdict]) -> tuple[str, ...]:
    return tuple(sorted({verdict.name for verdict in _failed(verdicts)}))


def _in_doubt(expect: Expect | None, violated: tuple[str, ...], verdicts: list[Verdict]) -> list[Verdict]:
    """The missing expected violations, if all of them are inconclusive and no other came: then the run is, too."""
    if not isinstance(expect, FailConfig) or not violated:
        return []
    missing = set(expect.fail) - set(violated)
    found = [v for v in verdicts if v.name in missing and v.status == "inconclusive"]
    return found if set(violated) | {v.name for v in found} == set(expect.fail) else []


def _invariants(history: History, scenario: Scenario, agent: AgentSpec) -> Iterator[Verdict]:
    for name, invariant in known().items():
        asked = name in scenario.invariants
        given = scenario.invariants.get(name, {})
        if given is None or ((invariant.asked or invariant.level == "strict") and not asked):
            continue
        parameters = bounds(name, given, agent, history.run.time_scale)
        if name == "work_kept":
            parameters = {"asked": asked, **parameters}
        verdict = check(name, history, **parameters)
        if asked and verdict.status == "nothing":
            verdict = inconclusive(f"the scenario asks for {name}: {verdict.says}").named(name)
        yield verdict


def _strict(history: History, scenario: Scenario, agent: AgentSpec) -> Iterator[Verdict]:
    """What counts only at level `strict`: its own invariants, and an answer in spite of harm that passes."""
    if not history.whole:
        return
    passes = bool(scenario.faults) and not any(map(_lasts, scenario.faults))
    for name, invariant in known().items():
        if name not in scenario.invariants and (invariant.level == "strict" or (passes and name == "turn_answered")):
            yield check(name, history, **bounds(name, {}, agent, history.run.time_scale))


def _lasts(planned: FaultConfig) -> bool:
    """Whether its harm does not pass before the end of its turn."""
    stays = planned.fault.lasts_its_turn and planned.heal is None
    return stays or planned.times == "always" or (isinstance(planned.fault, ReplyFault) and planned.fault.lasts)


def bounds(name: str, given: Mapping[str, Any], agent: AgentSpec, time_scale: float) -> dict[str, Any]:
    """The parameters of one invariant, in real seconds: the scenario's, else the stock ones, tightened by the spec.

    Two of them may be above a stock bound: the time of a turn, and a limit that the agent states with a reason.
    """
    takes = find(name).parameters
    parameters = {key: float(v) / time_scale if takes[key].scaled else v for key, v in given.items()}
    for limit, of in LIMITS.items():
        value = getattr(agent.limits, limit)
        if of == name and value is not None:
            stated = isinstance(value, StatedLimit)
            stock = None if stated or limit == "turn_s" else takes[limit].default
            other = parameters.get(limit, stock)
            bound = _whole(value.at_most) if stated else value
            parameters[limit] = bound if other is None else min(other, bound)
    calls = agent.limits.calls_per_turn
    if name == "paid_call_bound" and isinstance(calls, StatedLimit):  # all of them may be of one step, and empty
        higher = {"per_step": int(calls.at_most) - 1, "zero_output": int(calls.at_most)}
        stock = {key: takes[key].default for key in higher.keys() - given.keys()}
        parameters |= {key: max(it, higher[key]) for key, it in stock.items() if isinstance(it, int)}
    return parameters


def _whole(number: float) -> float:
    """The number as an integer if it is one: calls and rounds are counted."""
    return int(number) if number.is_integer() else number


def _own(history: History, scenario: Scenario, control: ControlFacts) -> Iterator[Verdict]:
    """Reasons outside of the invariants why a run does not count."""
    if history.missing is not None:
        yield error(f"event {history.missing} is missing from the record").for_reason("record")
    if not history.whole:
        yield inconclusive("the record ends before the run does").for_reason("record")
        return
    for trouble in history.of(Trouble):
        yield error(trouble.what, [trouble]).for_reason("harness")
    for unscripted in history.of(CallUnscripted):
        yield error(f"the script has no reply for a request: {unscripted.why}", [unscripted]).for_reason("script")
    yield from _limited(history)
    for turn, missed in ((it, it.start_missed) for it in history.turns if it.start_missed is not None):
        said = f"no request arrived within {missed.bound_s:g} s after {turn} was given"
        yield inconclusive(said, [missed]).for_reason("start")
    for refused in history.of(RequestRefused):
        expected = refused.message in control.refusals or _of_what_was_read(refused, scenario)
        if is_doubtful(refused) and not expected:
            said = f"the provider's validator refused a request, and not for its pairing: {refused.message}"
            yield inconclusive(said, [refused]).for_reason("validator")
    unmet = [it.unmet for it in scenario.faults]
    yield from fault_doubts(history, scenario.plan(history.run.time_scale), control, unmet)
    yield from _unsaid(history, scenario)
    yield from too_late_to_meet(history)
    yield from _unasked(history, scenario)
    stopped = any(names_stop(use.offered.name) and use.results for use in history.tool_uses)
    if scenario.delegates and not stopped and not any(call.arrived.side for call in history.calls):
        said = "no subagent asked the model, so what the scenario is about was not played"
        yield inconclusive(said).for_reason("subagents")


def _of_what_was_read(refused: RequestRefused, scenario: Scenario) -> bool:
    """Whether a picture or a document is refused, in a story whose model reads one: the refusal is part of it."""
    read = [it.path for it in scenario.file_actions if it.role == READ_FILE]
    shown = any(is_picture(path) or path.lower().endswith(".pdf") for path in read)
    return shown and _PICTURE.search(refused.message) is not None


def _limited(history: History) -> Iterator[Verdict]:
    """If the agent's own limit cuts an answer, the answer's nonce may be lost."""
    for turn in history.turns:
        cut = next((call for call in turn.main_calls if call.limited), None)
        if cut is not None and outcome_of(turn, history).kind in ("truncated", "hidden"):
            yield error(f"{turn}: {cut.limited}, so its answer cannot be judged", cut.evidence).for_reason("limit")


def _unsaid(history: History, scenario: Scenario) -> Iterator[Verdict]:
    given = {turn.number for turn in history.turns}
    for number, turn in enumerate(scenario.turns, 1):
        if turn.during is not None and number not in given:
            said = f"message {number} was never given: its moment in turn {turn.during.turn} did not come"
            yield inconclusive(said).for_reason("messages")


def _unasked(history: History, scenario: Scenario) -> Iterator[Verdict]:
    asked = {event.turn for event in history.of(PermissionAsked)}
    for number, turn in enumerate(scenario.turns, 1):
        if turn.permission != "allow" and number not in asked:
            said = f"in turn {number} the agent never asked for permission, so nothing was answered"
            yield inconclusive(said).for_reason("permission")


def _says(history: History, verdicts: list[Verdict]) -> str:
    """The sentence of the worst verdict; for a pass, how its turns ended."""
    for status in ("error", "fail", "inconclusive"):
        found = [verdict for verdict in verdicts if verdict.status == status]
        if found:
            causes_first = sorted(found, key=lambda verdict: verdict.name in CONSEQUENCES)
            said = [f"{v.name}: {v.says}" if status == "fail" else v.says for v in causes_first]
            return "; ".join(dict.fromkeys(said))
    return "; ".join(f"{turn.in_session}: {outcome_of(turn, history).kind}" for turn in history.turns)
