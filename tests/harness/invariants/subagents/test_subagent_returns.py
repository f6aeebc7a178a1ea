"""What a subagent in the background says, and its end, reach the conversation."""

from collections.abc import Sequence

import pytest

from wedgehog.harness.invariants import check
from wedgehog.harness.record.verdict import Verdict
from wedgehog.harness.testing import HistoryBuilder
from wedgehog.harness.testing.history_builder import result

LAUNCHED = result("1.1.1", chars=30, printed=False, signs=("elsewhere",))


@pytest.fixture
def tell() -> HistoryBuilder:
    """The model has called a subagent, and the agent has gone on."""
    builder = HistoryBuilder()
    builder.message()
    builder.reply(builder.ask(1), tools=[True], name="task")
    builder.reply(builder.ask(2, results=[LAUNCHED]), f"Done {builder.nonce}")
    return builder


def ends(tell: HistoryBuilder, *, well: bool = True, exit_code: int | None = 0) -> int:
    """The turn is over, and then the subagent ends."""
    tell.end(exit_code=exit_code)
    call = tell.ask(1, side="subagent 1", turn=1)
    if well:
        tell.reply(call, "The file is empty. wqbcdn3e")
    else:
        tell.refuse(call, 403)
    return call


def next_message(
    tell: HistoryBuilder,
    name: str = "subagent_returns",
    *,
    after_s: float = 5,
    quotes: Sequence[int] = (),
    notices: Sequence[str] = (),
    tools: Sequence[str] = (),
    lead: bool | None = None,
    stderr: str = "",
) -> Verdict:
    tell.wait(after_s)
    tell.message()
    tell.reply(tell.ask(1, quotes=quotes, notices=notices, tools=tools, lead=lead), f"Done {tell.nonce}")
    return check(name, tell.end(stderr=stderr).seal())


def test_the_next_message_brings_its_words(tell: HistoryBuilder):
    assert next_message(tell, quotes=[ends(tell)]).status == "pass"


def test_a_lost_result_is_red_and_an_orphan_is_named(tell: HistoryBuilder):
    ends(tell)
    verdict = next_message(tell)
    assert verdict.status == "fail"
    assert verdict.says.startswith("subagent 1, which worked in the background, ended well in call 3, and no later")
    assert "the agent's process had ended 0.1 s before" in verdict.says


def test_a_process_that_stays_leaves_no_orphan(tell: HistoryBuilder):
    ends(tell, exit_code=None)
    assert "process" not in next_message(tell).says


@pytest.mark.parametrize(("notice", "status"), [("a1", "pass"), ("1.1.1:a1", "pass"), ("7.1.1:a1", "fail")])
def test_word_of_its_end_is_enough_but_not_that_of_another_call(tell: HistoryBuilder, notice: str, status: str):
    ends(tell)
    assert next_message(tell, notices=[notice]).status == status


@pytest.mark.parametrize(("lead", "status"), [(False, "fail"), (True, "pass"), (None, "pass")])
def test_word_of_an_end_says_where_the_words_are(tell: HistoryBuilder, lead: bool | None, status: str):
    """At level strict. Old runs have not recorded it."""
    ends(tell)
    assert next_message(tell, "subagent_words_told", notices=["a1"], lead=lead).status == status


def test_words_that_came_or_may_be_asked_for_are_not_missed(tell: HistoryBuilder):
    """In the conversation, or by a tool; where not even the end is told, that is another matter."""
    call = ends(tell)
    assert next_message(tell, "subagent_words_told", notices=["a1"], lead=False, quotes=[call]).status == "pass"


def test_a_tool_that_waits_for_a_subagent_can_bring_its_words(tell: HistoryBuilder):
    ends(tell)
    tools = ["bash", "wait_agent"]
    assert next_message(tell, "subagent_words_told", notices=["a1"], lead=False, tools=tools).status == "pass"


def test_words_that_could_be_anyones_are_not_judged(tell: HistoryBuilder):
    """Nothing shows whether they came."""
    tell.end()
    tell.reply(tell.ask(1, side="subagent 1", turn=1), "It is empty.")
    assert next_message(tell, "subagent_words_told", notices=["a1"], lead=False).status == "nothing"


def test_an_end_that_nothing_tells_of_is_left_to_another_check(tell: HistoryBuilder):
    ends(tell)
    assert next_message(tell, "subagent_words_told").status == "nothing"


def test_the_user_may_hear_of_it_in_the_place_of_the_model(tell: HistoryBuilder):
    ends(tell)
    assert next_message(tell, stderr="[subagent] The file is empty. wqbcdn3e").status == "pass"


def test_a_message_that_comes_at_once_may_miss_it(tell: HistoryBuilder):
    ends(tell)
    verdict = next_message(tell, after_s=0.5)
    assert (verdict.status, verdict.says) == ("nothing", "not judged: no message came after the end of subagent 1")


def test_a_model_that_could_ask_and_did_not_proves_nothing(tell: HistoryBuilder):
    ends(tell)
    verdict = next_message(tell, tools=["bash", "get_agent_result"])
    assert verdict.status == "nothing" and "could ask for that by get_agent_result" in verdict.says


@pytest.mark.parametrize(("notices", "status"), [((), "fail"), (["a1"], "pass")])
def test_what_the_model_asked_for_must_be_there(tell: HistoryBuilder, notices: list[str], status: str):
    ends(tell)
    tell.wait(5)
    tell.message()
    (token,) = tell.reply(tell.ask(1, tools=["wait_agent"]), tools=[True], name="wait_agent")
    tell.reply(tell.ask(2, results=[result(token, chars=0)], notices=notices), f"Done {tell.nonce}")
    assert check("subagent_returns", tell.end().seal()).status == status


@pytest.mark.parametrize("heard", [True, False])
def test_a_failure_is_red_where_another_subagent_was_heard_of(tell: HistoryBuilder, heard: bool):
    """At level strict it is red in any case."""
    first = ends(tell)
    tell.wait(5)
    tell.message()
    (token,) = tell.reply(tell.ask(1, quotes=[first] if heard else []), tools=[True], name="task")
    tell.reply(tell.ask(2, results=[result(token, chars=30, signs=("elsewhere",))]), f"Done {tell.nonce}")
    tell.end()
    tell.refuse(tell.ask(1, side="subagent 2", turn=2), 403)
    tell.wait(5)
    tell.message()
    tell.answer_step(1)
    history = tell.end().seal()
    found = check("subagent_returns", history)
    assert found.says.startswith("subagent 2" if heard else "subagent 1") and not found.more
    assert check("subagent_end_told", history).says.startswith("subagent 2")


def test_one_that_ended_with_its_process_is_no_loss_but_a_silence(tell: HistoryBuilder):
    """Its model believes that it still works: that is for level strict."""
    tell.end()
    call = tell.ask(1, side="subagent 1", turn=1)
    tell.reply(call, how="hung up", delivered=0)
    tell.hangs_up(call)
    tell.wait(5)
    tell.message()
    tell.answer_step(1)
    history = tell.end().seal()
    assert check("subagent_returns", history).status == "pass"
    assert check("subagent_end_told", history).status == "fail"


@pytest.mark.parametrize(
    ("remembers", "notices", "status"), [(True, (), "fail"), (True, ["1.1.1:a1"], "pass"), (False, (), "nothing")]
)
def test_one_that_died_with_its_agent_is_told_of_where_the_conversation_remembers_it(
    remembers: bool, notices: Sequence[str], status: str
):
    """The next message finds a new process, and a model that may still wait for it."""
    tell = HistoryBuilder()
    tell.message()
    tell.reply(tell.ask(1), tools=[True], name="task")
    waits = tell.ask(2, results=[LAUNCHED])
    works = tell.ask(1, side="subagent 1", turn=1)
    tell.kill()
    for call in (waits, works):
        tell.reply(call, how="hung up", delivered=0)
        tell.hangs_up(call)
    tell.wait(5)
    tell.message()
    tell.reply(tell.ask(1, results=[LAUNCHED] if remembers else [], notices=notices), f"Done {tell.nonce}")
    history = tell.end().seal()
    assert check("subagent_end_told", history).status == status
    assert check("subagent_returns", history).status == "pass"


def test_one_whose_parent_waited_is_not_in_the_background():
    tell = HistoryBuilder()
    tell.message()
    tell.reply(tell.ask(1), tools=[True], name="task")
    tell.reply(tell.ask(1, side="subagent 1"), "The file is empty.")
    tell.reply(tell.ask(2, results=[result("1.1.1")]), f"Done {tell.nonce}")
    tell.end()
    verdict = next_message(tell)
    assert (verdict.status, verdict.because) == ("pass", "the agent waited for subagent 1")


def test_one_that_its_parent_gave_up_or_its_user_stopped_is_not_missed():
    for gives_up in (True, False):
        tell = HistoryBuilder()
        tell.message()
        tell.reply(tell.ask(1), tools=[True], name="task")
        told = result("1.1.1", is_error=gives_up, signs=("failed", "stopped") if gives_up else ("elsewhere",))
        tell.reply(tell.ask(2, results=[told]), f"Done {tell.nonce}")
        if not gives_up:
            tell.abort()
        ends(tell)
        assert next_message(tell).status == "nothing"
