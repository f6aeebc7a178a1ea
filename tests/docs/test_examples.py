"""The examples of an invariant and a fault are what their pages say."""

from datetime import UTC, datetime

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from wedgehog.fake_llm.reply import Reply, Text, ToolCall
from wedgehog.harness.faults.base import parse_fault
from wedgehog.harness.faults.reply_fault import Context, ReplyFault
from wedgehog.harness.invariants import check, known
from wedgehog.harness.testing import HistoryBuilder
from wedgehog.harness.testing.faults import conformance_cases


def test_the_example_invariant_lets_one_answer_pass(example):
    """A turn that is answered once is what it asks for."""
    example("one_answer_per_turn")
    tell = HistoryBuilder()
    tell.message()
    tell.reply(tell.ask(1), "Done")
    assert check("one_answer_per_turn", tell.end().seal()).status == "pass"


def test_the_example_invariant_sees_a_second_answer(example):
    """It names both requests as evidence, and its bound can be moved."""
    example("one_answer_per_turn")
    tell = HistoryBuilder()
    tell.message()
    for _ in range(2):
        tell.reply(tell.ask(1), "Done")
    history = tell.end().seal()
    verdict = check("one_answer_per_turn", history)
    assert (verdict.status, verdict.says) == ("fail", "turn 1 was answered 2 times, 1 allowed")
    assert verdict.evidence == tuple(call.arrived.id for call in history.calls)
    assert check("one_answer_per_turn", history, answers=2).status == "pass"


def test_an_example_is_forgotten_after_its_test():
    """No other test meets it in the registry."""
    assert "one_answer_per_turn" not in known()


def test_the_example_fault_renames_tools_and_nothing_else(example):
    """Its main parameter may be written alone, as in a scenario."""
    example("renamed_tool")
    fault = parse_fault({"renamed_tool": "_beta"})
    assert isinstance(fault, ReplyFault)
    context = Context(event=None, request_bytes=0, now=datetime(2026, 1, 1, tzinfo=UTC))
    said = fault.on_answer(Reply((Text("Let me look."), ToolCall("shell", {"command": "ls"}))), context)
    assert said == Reply((Text("Let me look."), ToolCall("shell_beta", {"command": "ls"})))
    assert parse_fault("renamed_tool") == parse_fault({"renamed_tool": {"suffix": "_v2"}})


def test_the_example_wire_fault_holds_on_the_embedded_network(example):
    """The conformance suite takes a plugin's fault."""
    example("late_bytes")
    (case,) = [case for case in conformance_cases("late_bytes") if case.network == "embedded"]
    case.run()


@pytest.mark.parametrize("forgets", [False, True])
def test_the_example_state_machine_finds_the_order_of_messages_that_breaks_a_session(example, forgets: bool):
    """A tool that fails, and any next message: the call has no result, and the provider refuses it."""
    machine = type("Forgetful", (example("conversations").Conversations,), {"forgets": forgets})
    few = settings(max_examples=15, stateful_step_count=5, deadline=None, database=None, derandomize=True)
    if forgets:
        with pytest.raises(AssertionError, match="tool_call"):
            run_state_machine_as_test(machine, settings=few)
    else:
        run_state_machine_as_test(machine, settings=few)
