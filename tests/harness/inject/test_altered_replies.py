"""The injector: replies that a fault changes or replaces."""

from typing import Any

from wedgehog.fake_llm.edit_kinds import MIDDLE as HALF
from wedgehog.fake_llm.reply import Failure, Reply, Text, ToolCall
from wedgehog.fake_llm.script.side_conversations import SideConversation


async def test_a_status_replaces_the_answer_and_has_fired_when_it_was_said(rig: Any):
    """Asked twice for one call, it counts one attempt."""
    it = rig({"do": {"status": {"code": 429, "retry_after": 7}}, "times": 2})
    await it.injector.before_turn(1)
    said = [it.answer(it.arrives(attempt=attempt), Reply((Text("Hi"),))) for attempt in (1, 2, 3)]
    assert [isinstance(answer, Failure) for answer in said] == [True, True, False]
    assert said[0].status == 429
    assert [fired.call for fired in it.fired] == [1, 2]


async def test_an_edit_of_the_stream_has_fired_only_where_the_fake_says_it_applied(rig: Any):
    """A reply that is not streamed, or too short, has nothing to edit."""
    it = rig({"at": {"event": 2}, "do": "early_end"})
    await it.injector.before_turn(1)
    call = it.arrives()
    answer = it.answer(call, Reply((Text("Hi"),)))
    assert answer.edits[0].event == 2 and not it.fired
    it.injector.edited(call, ())
    assert not it.fired
    it.injector.edited(call, ("early_end",))
    assert [fired.call for fired in it.fired] == [call]


async def test_an_edit_in_the_middle_leaves_its_event_to_the_stream(rig: Any):
    """Only the fake provider knows how many events a reply has."""
    it = rig({"at": {"phase": "middle"}, "do": "early_end"})
    await it.injector.before_turn(1)
    assert it.answer(it.arrives(), Reply((Text("Hi"),))).edits[0].event == HALF


async def test_a_fault_that_finds_nothing_to_harm_has_not_fired(rig: Any):
    """Arguments cannot be garbage where no tool is called; where one is, they are, and the fault is proved."""
    it = rig({"do": "garbage_arguments", "times": 2})
    await it.injector.before_turn(1)
    words = Reply((Text("Hi"),))
    assert it.answer(it.arrives(), words) == words
    assert not it.fired
    call = it.arrives()
    harmed = it.answer(call, Reply((ToolCall("shell", {"command": "ls"}),)))
    assert harmed.items[0].raw_args
    assert [fired.call for fired in it.fired] == [call]


async def test_endless_tools_go_on_in_every_later_step(rig: Any):
    """From the trigger's step to the end of the turn, whatever the script says there."""
    it = rig({"at": {"step": 2}, "do": "endless_tools"})
    await it.injector.before_turn(1)
    script = Reply((ToolCall("shell", {"command": "ls"}),))
    said = [it.answer(it.arrives(step=step), script) for step in (1, 2, 3, 9)]
    assert [answer == script for answer in said] == [True, False, False, False]
    assert it.answer(it.arrives(turn=2), script) == script


async def test_endless_tools_of_a_subagent_go_on_in_its_later_steps_only(rig: Any):
    """Neither in another conversation beside the main one, nor in the main one."""
    it = rig({"at": {"on": "subagent"}, "do": "endless_tools"})
    await it.injector.before_turn(1)
    script = Reply((ToolCall("shell", {"command": "ls"}),))
    sides = (SideConversation("subagent", 1, 1), SideConversation("judge", 1, 1), None)
    harmed = {
        (str(side), step): it.answer(it.arrives(step=step, side=side), script) != script
        for side in sides
        for step in (1, 2, 9)
    }
    assert {place for place, is_harmed in harmed.items() if is_harmed} == {("subagent 1", step) for step in (1, 2, 9)}


async def test_endless_tools_of_one_model_leave_the_others_alone(rig: Any):
    """A fallback model answers as it should."""
    it = rig({"at": {"model_name": "m1"}, "do": "endless_tools"})
    await it.injector.before_turn(1)
    script = Reply((ToolCall("shell", {"command": "ls"}),))
    assert it.answer(it.arrives(model="m2", step=2), script) == script
    assert it.answer(it.arrives(model="m1"), script) != script
    assert it.answer(it.arrives(model="m1", step=2), script) != script
