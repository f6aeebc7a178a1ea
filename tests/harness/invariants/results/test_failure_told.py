"""What the model reads of a failed tool: that it failed, and what it had printed."""

from collections.abc import Sequence

import pytest

from wedgehog.harness.invariants import check
from wedgehog.harness.record.events.call import ToolResult
from wedgehog.harness.record.events.service import ToolAsked
from wedgehog.harness.record.verdict import Verdict
from wedgehog.harness.testing import HistoryBuilder
from wedgehog.harness.testing.history_builder import result

CALL = "1.1.1"


def _asked(*, tools: int = 1, name: str = "shell") -> HistoryBuilder:
    tell = HistoryBuilder()
    tell.message()
    tell.reply(tell.ask(1), tools=[True] * tools, name=name)
    return tell


def _next(tell: HistoryBuilder, *results: ToolResult) -> Verdict:
    tell.answer_step(2, results)
    return check("failure_told", tell.end().seal())


# ---- a command that failed


@pytest.mark.parametrize(
    ("told", "code", "status"),
    [
        (result(CALL, signs=()), 7, "fail"),
        (result(CALL, signs=("part",)), 7, "fail"),
        (result(CALL, signs=(), is_error=True), 7, "pass"),
        (result(CALL, signs=("failed", "number")), 7, "pass"),
        (result(CALL, signs=("number",)), 7, "pass"),
        (result(CALL, signs=("foreign",)), 7, "pass"),
        (result(CALL, signs=None), 7, "pass"),
        (result(CALL, signs=()), 1, "pass"),
        (result(CALL, signs=()), 0, "nothing"),
        (result(CALL, signs=(), printed=False), 7, "fail"),
    ],
)
def test_a_result_says_that_its_command_failed(told: ToolResult, code: int, status: str):
    """By a mark, a word or a number. `grep` exits with 1 where it finds nothing; old runs have no signs."""
    tell = _asked()
    tell.starts(CALL)
    tell.done(CALL, code)
    assert _next(tell, told).status == status


def test_the_sentence_names_the_exit_code_that_the_model_does_not_read():
    """The words of the command are there, and so look like a success."""
    tell = _asked()
    tell.starts(CALL)
    tell.done(CALL, 7)
    says = _next(tell, result(CALL, signs=())).says
    assert says == "tool call 1.1.1 (shell) failed with exit code 7, and nothing in its result says so"


# ---- a command that was stopped

STOPPED = ("stopped", "failed")


@pytest.mark.parametrize(
    ("told", "after_s", "status"),
    [
        (result(CALL, printed=False, signs=STOPPED, prints_first=False), 8.0, "fail"),
        (result(CALL, printed=False, signs=STOPPED, prints_first=False, is_error=True), 8.0, "fail"),
        (result(CALL, printed=False, signs=STOPPED, prints_first=True), 8.0, "pass"),
        (result(CALL, printed=False, signs=STOPPED, prints_first=None), 8.0, "nothing"),
        (result(CALL, printed=False, signs=None), 8.0, "nothing"),
        (result(CALL, printed=False, signs=(*STOPPED, "elsewhere"), prints_first=False), 8.0, "nothing"),
        (result(CALL, printed=False, signs=(), prints_first=False), 8.0, "nothing"),
        (result(CALL, printed=False, signs=STOPPED, prints_first=False), 0.3, "nothing"),
    ],
)
def test_what_a_command_printed_before_its_time_out_is_in_its_result(told: ToolResult, after_s: float, status: str):
    """An agent may let it run on, or keep its output in a file, and say so."""
    tell = _asked()
    tell.starts(CALL)
    tell.wait(after_s)
    verdict = _next(tell, told)
    assert verdict.status == status
    assert status != "fail" or "was stopped, and what it had printed is not in its result" in verdict.says


@pytest.mark.parametrize(
    ("told", "ends", "status"),
    [
        (result(CALL, chars=10, printed=False, signs=(), prints_first=True), False, "fail"),
        (result(CALL, chars=18, printed=False, signs=("number",), prints_first=True), False, "nothing"),
        (result(CALL, chars=30, printed=False, signs=("elsewhere",), prints_first=True), False, "nothing"),
        (result(CALL, chars=10, printed=False, signs=(), prints_first=True, is_error=True), False, "nothing"),
        (result(CALL, chars=10, printed=False, signs=(), prints_first=True), True, "nothing"),
    ],
)
def test_a_result_says_that_its_command_died(told: ToolResult, ends: bool, status: str):
    """A signal ended it at once: what it had printed looks like all of it. One that ends later goes on somewhere."""
    tell = _asked()
    tell.starts(CALL)
    tell.wait(0.2)
    tell.answer_step(2, [told])
    if ends:
        tell.done(CALL, 0)
    assert check("failure_told", tell.end().seal()).status == status


def test_a_command_that_ended_before_its_result_was_not_stopped():
    """Its own end is judged by other invariants."""
    tell = _asked()
    tell.starts(CALL)
    tell.wait(5)
    tell.done(CALL, 0)
    told = result(CALL, printed=False, signs=STOPPED, prints_first=False)
    assert _next(tell, told).status == "nothing"


@pytest.mark.parametrize(
    ("told", "status"),
    [
        (result(CALL, chars=0, printed=False, signs=(), prints_first=False), "fail"),
        (result(CALL, chars=11, printed=False, signs=(), prints_first=False), "fail"),
        (result(CALL, chars=11, printed=False, signs=(), prints_first=False, is_error=True), "nothing"),
        (result(CALL, chars=11, printed=False, signs=("elsewhere",), prints_first=False), "nothing"),
        (result(CALL, chars=60, printed=False, signs=(), prints_first=False), "nothing"),
        (result(CALL, chars=0, printed=False, signs=(), prints_first=None), "nothing"),
        (result(CALL, chars=0, printed=False, signs=None, prints_first=False), "nothing"),
    ],
)
def test_an_empty_result_hides_that_its_command_was_stopped(told: ToolResult, status: str):
    """The model reads that the command printed nothing and ended well."""
    tell = _asked()
    tell.starts(CALL)
    tell.wait(8)
    verdict = _next(tell, told)
    assert verdict.status == status
    assert status != "fail" or "had not ended, and its result says nothing of that" in verdict.says


# ---- a subagent that failed


def _fails(tell: HistoryBuilder, number: int, words: str = "") -> None:
    for _ in range(2):
        tell.refuse(tell.ask(1, side=f"subagent {number}", background="subagent"), 529)
    if words:
        tell.cut(tell.ask(1, side=f"subagent {number}", background="subagent"), words)


def _works(tell: HistoryBuilder, number: int) -> None:
    tell.reply(tell.ask(1, side=f"subagent {number}", background="subagent"), "The file is empty.")


@pytest.mark.parametrize(
    ("signs", "is_error", "status"),
    [((), False, "fail"), (("failed",), False, "pass"), ((), True, "pass"), (("elsewhere",), False, "pass")],
)
def test_the_result_of_a_subagent_says_that_it_failed(signs: Sequence[str], is_error: bool, status: str):
    """Its parent takes "(nothing)" for what the subagent found."""
    tell = _asked(name="task")
    _fails(tell, 1)
    assert _next(tell, result(CALL, signs=signs, is_error=is_error, printed=False)).status == status


def test_of_two_subagents_one_result_says_that_one_failed():
    """Which result belongs to which subagent is not known."""
    for signs, status in (((), "fail"), (("failed",), "pass")):
        tell = _asked(tools=2, name="task")
        _works(tell, 1)
        _fails(tell, 2)
        verdict = _next(tell, result(CALL, signs=()), result("1.1.2", signs=signs))
        assert verdict.status == status
        assert status == "pass" or verdict.says.startswith("subagent 2 failed (call 4), and no result in request 5")


@pytest.mark.parametrize("name", ["shell", "read_file"])
def test_a_conversation_beside_another_tool_is_not_judged(name: str):
    """It may be a judge, whose failure is no result of the tool."""
    tell = _asked(name=name)
    _fails(tell, 1)
    assert _next(tell, result(CALL, signs=(), printed=False)).status == "nothing"


def test_a_subagent_that_was_asked_again_with_success_or_said_something_did_not_fail():
    """Its words are judged by `subagent_kept`."""
    for ends in (lambda tell: _works(tell, 1), lambda tell: _fails(tell, 1, "The file is")):
        tell = _asked(name="task")
        _fails(tell, 1)
        ends(tell)
        assert _next(tell, result(CALL, signs=(), printed=False)).status == "nothing"


def test_a_subagent_that_goes_on_behind_its_parent_is_not_judged():
    """The parent did not wait for it."""
    tell = _asked(name="task")
    _fails(tell, 1)
    tell.reply(tell.ask(2, results=[result(CALL, signs=(), printed=False)]), tools=[True])
    _fails(tell, 1)
    tell.answer_step(3, [])
    assert check("failure_told", tell.end().seal()).status == "nothing"


def test_a_subagent_of_a_subagent_is_not_judged():
    """What failed is not known to be the one that the parent called."""
    tell = _asked(name="task")
    _fails(tell, 2)
    _works(tell, 1)
    assert _next(tell, result(CALL, signs=(), printed=False)).status == "nothing"


@pytest.mark.parametrize(("signs", "status"), [(("failed",), "fail"), (("failed", "stopped"), "inconclusive")])
def test_on_a_busy_machine_the_words_of_a_tool_of_our_host_are_missed_all_the_same(signs: Sequence[str], status: str):
    """Its result comes in one message; only a timer of the agent, which says so, may be the machine's fault."""
    tell = HistoryBuilder()
    tell.message()
    (token,) = tell.reply(tell.ask(1), tools=[True])
    tell.add(ToolAsked(tool="movie", token=token, server=7))
    tell.starts(token)
    tell.wait(0.5).done(token, 1)
    tell.waited(0.4, for_s=0.5)
    assert _next(tell, result(token, chars=22, is_error=True, printed=False, signs=signs)).status == status
