"""Checks across several keys of a scenario: each yields the key's path and the message."""

from collections.abc import Iterator

from wedgehog.fake_llm.reply import ToolCall
from wedgehog.fake_llm.script.conversations import doubled
from wedgehog.harness.faults.base import Fault, WireFault
from wedgehog.harness.faults.reply_fault import ReplyFault
from wedgehog.harness.scenario.fault_config import FaultConfig, TriggerConfig
from wedgehog.harness.scenario.mistake import DocumentPath
from wedgehog.harness.scenario.readable import found_in
from wedgehog.harness.scenario.scenario_keys import ScenarioKeys
from wedgehog.harness.scenario.trigger import CALLS, COMPACTION, HOST, PIPE, STORE

_Found = tuple[DocumentPath, str]


def contradictions(scenario: ScenarioKeys) -> Iterator[_Found]:
    """Where parts of the scenario do not fit together, and why; of a `Readable` scenario, as far as it can be read."""
    yield from found_in(scenario, (_during, _at_once, _mixed_sessions, _one_user, _conversations, _faults))


def _during(scenario: ScenarioKeys) -> Iterator[_Found]:
    """Messages that are given while another turn is under way."""
    for place, turn in enumerate(scenario.turns):
        if turn.during is None:
            continue
        if turn.during.turn > place:
            yield ("turns", place, "during", "turn"), "`during` names an earlier turn"
            continue
        for said, key in _unscripted(scenario, turn.during):
            yield ("turns", place, "during", key), said


def _at_once(scenario: ScenarioKeys) -> Iterator[_Found]:
    """Messages that follow on a stop."""
    stopped = {it.at.turn for it in scenario.faults if {"abort", "front_end"} & set(it.fault.needs)}
    for place, turn in enumerate(scenario.turns):
        if turn.at_once and turn.pause_s:
            yield ("turns", place, "pause_s"), "a message that follows at once has no pause"
        if turn.at_once and place not in stopped:
            yield ("turns", place, "at_once"), "no fault stops the turn before: write `do: abort`"


def _conversations(scenario: ScenarioKeys) -> Iterator[_Found]:
    if (second := doubled(scenario.conversations)) is not None:
        yield ("conversations", second, "name"), "a second conversation of this name"


def _faults(scenario: ScenarioKeys) -> Iterator[_Found]:
    beside = {place for place, turn in enumerate(scenario.turns, 1) if turn.during is not None}
    for index, words in enumerate(scenario.faults):
        for said, *keys in _mistakes(scenario, words, beside):
            yield ("faults", index, *keys), said


def _mixed_sessions(scenario: ScenarioKeys) -> Iterator[_Found]:
    """What several sessions cannot have."""
    given: set[tuple[int, str]] = set()
    for place, turn in enumerate(scenario.turns):
        if turn.append is not None and turn.session != scenario.sessions[0]:
            yield ("turns", place, "append"), f"only the first session, {scenario.sessions[0]}, is appended to"
        if turn.during is None or turn.during.turn > place:
            continue
        around = scenario.turns[turn.during.turn - 1]
        if around.session == turn.session:
            continue
        if around.during is not None:
            yield ("turns", place, "during", "turn"), "name the turn that surrounds both"
        if (turn.during.turn, turn.session) in given:
            yield ("turns", place, "during"), f"session {turn.session} has a message during turn {turn.during.turn}"
        given.add((turn.during.turn, turn.session))


def _one_user(scenario: ScenarioKeys) -> Iterator[_Found]:
    if scenario.one_user and len(scenario.sessions) < 2:
        yield ("one_user",), "its user has only one conversation: give turns a `session`"


def _mistakes(scenario: ScenarioKeys, words: FaultConfig, beside: set[int]) -> Iterator[tuple[str, ...]]:
    """What is wrong with a fault in this scenario, and the keys of it."""
    turn, turns = words.at.turn, len(scenario.turns)
    if turn > turns:
        yield f"there is no turn {turn}, only {turns}", "at", "turn"
        return
    if words.at.session == "idle" and not scenario.turns[turn - 1].pause_s:
        yield f"the session is not idle before turn {turn}: give this turn `pause_s: 4`", "at", "session"
    for said, key in _unscripted(scenario, words.at):
        yield said, "at", key
    if words.sticks_to == "conversation" and words.at.on in ("main", "background", COMPACTION):
        yield "a fault sticks only to a conversation beside the main one: write `at: {on: subagent}`", "sticks_to"
    if words.link in (HOST, PIPE) and not scenario.tools:
        yield "our tool host has no tools: write `tools: {…: {answer: …}}`", "link"
    if words.link == STORE and scenario.store is None:
        yield "there is no database: write `store: {latency_s: 0.05}`", "link"
    if turn in beside and {"abort", "front_end"} & set(words.fault.needs):
        yield "a stop cannot tell two turns apart that run at the same time", "at", "turn"
    # Toxiproxy's link either resets or closes: it cannot do both in one run.
    closes, first = _closes(words.fault), next(filter(None, (_closes(it.fault) for it in scenario.faults)), None)
    if closes not in (None, first):
        yield "one scenario cuts with fin or with rst, not with both", "do"


def _unscripted(scenario: ScenarioKeys, at: TriggerConfig) -> Iterator[tuple[str, str]]:
    """Why the script never comes to this call, and the key that names it; an endless loop comes to every step."""
    same_turn = (it.fault for it in scenario.faults if it.at.turn == at.turn)
    endless = any(isinstance(fault, ReplyFault) and fault.repeats_on_later_steps for fault in same_turn)
    if at.on != "main":
        yield from _beside(scenario, at)
        return
    if endless:
        return
    replies = scenario.turns[at.turn - 1].replies
    if at.step > max(1, len(replies)):
        yield f"the script has only {_counted(len(replies), 'step')} in turn {at.turn}", "step"
        return
    calls = [item for reply in replies[at.step - 1 : at.step] for item in reply.items if isinstance(item, ToolCall)]
    if at.tool is not None and at.tool > len(calls):
        many = f"only {_counted(len(calls), 'tool')}" if calls else "no tool"
        yield f"the script's reply in turn {at.turn}, step {at.step} calls {many}", "tool"


def _beside(scenario: ScenarioKeys, at: TriggerConfig) -> Iterator[tuple[str, str]]:
    """Why no call beside the main conversation is ever at this place, and the key that names it."""
    scripts = {it.name: len(it.model) for it in scenario.conversations}
    if at.on not in CALLS and at.on not in scripts:
        known = (*CALLS, *scripts)
        yield f"expected {', '.join(known[:-1])} or {known[-1]}, found {at.on!r}", "on"
    elif at.on in scripts and at.step > scripts[at.on]:
        yield f"the script has only {_counted(scripts[at.on], 'step')} in the conversation {at.on}", "step"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' if count != 1 else ''}"


def _closes(fault: Fault) -> str | None:
    """How it closes its connection, if it does."""
    return fault.ends if isinstance(fault, WireFault) and fault.proof == "count" and fault.ends != "stall" else None
