"""What a reader asks first after an incident, answered by the page alone."""

import re
from html import unescape
from pathlib import Path

from wedgehog.harness.record.events.call import ToolCallOffered, ToolResult
from wedgehog.harness.record.events.run import SessionKept
from wedgehog.harness.record.events.service import BeaconSeen
from wedgehog.harness.record.events.turn import GaveUp
from wedgehog.reports import write_folder
from wedgehog.reports.page.run.run_files import READ_AT_MOST, last_record

from .conftest import Campaign, Tell, Telling, judgement, storm


def _page(campaign: Campaign, tell: Tell) -> str:
    """The text of the page of one run."""
    campaign.run(judgement("s", "a"), tell)
    write_folder(campaign.folder)
    page = (campaign.folder / "report.html").read_text(encoding="utf-8")
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", page)).split())


def _lost(attempts: int) -> Tell:
    def tell(telling: Telling) -> None:
        telling.start("s", "a")
        telling.message(1)
        for _ in range(attempts):
            call = telling.request(1)
            telling.accept(call)
            telling.stalled(call, 60.0)
        telling.end(1, error="Error: Timeout", exit_code=1)

    return tell


def test_was_a_lost_request_sent_again(campaign: Campaign):
    """One that was not is said to be lost for good; of the others the number of attempts is said."""
    assert "(fault: stall). It was not sent again." in _page(campaign, _lost(1))
    again = _page(campaign, _lost(2))
    assert "Step 1 of turn 1 had 2 attempts" in again and "not sent again" not in again


def test_how_did_the_history_grow_and_why_did_each_reply_end(campaign: Campaign):
    """The first continuations and the last one, with the tool calls whose results they carry; the stop reasons."""

    def tell(telling: Telling) -> None:
        telling.start("s", "a")
        telling.message(1)
        for step in range(1, 8):
            results = tuple(ToolResult(f"id{n}", 100, token=f"1.{n}.1") for n in range(1, step))
            call = telling.request(1, step, results=results)
            telling.accept(call)
            telling.whole(call, stop="tool" if step < 7 else "end")
        telling.end(1, "Done")

    page = _page(campaign, tell)
    with_prompt = "(with any system prompt)"
    one = "1 tool result of 100 characters, of tool call 1.1.1."
    assert f"The continuation in step 2 of turn 1 carried 4 messages {with_prompt} and {one}" in page
    assert "The continuation in step 4 of turn 1 carried" in page and "The continuation 1.5 carried" not in page
    assert (
        "… and 2 more continuations; the last one: The continuation in step 7 of turn 1 carried 14 messages "
        f"{with_prompt} and 6 tool results" in page
    )
    assert "of tool call 1.1.1, 1.2.1, 1.3.1, 1.4.1 and 2 more." in page
    assert page.count("complete; stop reason: tool") == 6 and page.count("complete; stop reason: end") == 1


def test_the_result_of_a_command_that_did_not_end_names_its_author(campaign: Campaign):
    """The agent: from which request on, and whether as an error."""

    def tell(telling: Telling) -> None:
        telling.start("s", "a")
        telling.message(1)
        call = telling.request(1)
        telling.accept(call)
        telling.whole(call, stop="tool", tool_calls=(ToolCallOffered("1.1.1", "exec", True),))
        telling.history.add(BeaconSeen(token="1.1.1", phase="started"))
        telling.end(1, ended="killed")
        telling.message(2)
        call = telling.request(2, results=(ToolResult("id1", 40, is_error=True, token="1.1.1"),))
        telling.accept(call)
        telling.whole(call, "Yes?")
        telling.end(2, "Yes?")

    says = "Tool call 1.1.1 exec did not end; from request 2.1 on it has a result as an error."
    assert says in _page(campaign, tell)


def test_what_is_the_last_record_of_the_session(campaign: Campaign):
    """Of a file of JSON lines; other files have none."""

    def tell(telling: Telling) -> None:
        storm(1, "a")(telling)
        for name in ("log.jsonl", "state.json", "gone.jsonl"):
            telling.history.add(SessionKept(path=f"deep/{name}", sha256="ab" * 32, size=20))

    kept = campaign.folder / "s" / "a" / "session" / "deep"
    kept.mkdir(parents=True)
    for name in ("log.jsonl", "state.json"):
        (kept / name).write_text('{"type": "user"}\n{"type": "toolCall"}\n\n')
    page = _page(campaign, tell)
    assert page.count("its last record:") == 1 and 'its last record: {"type": "toolCall"}' in page


def test_a_record_that_is_not_read_whole_is_not_shown(tmp_path: Path):
    """Of a long file only the end is read."""
    file = tmp_path / "log.jsonl"
    file.write_text("x" * READ_AT_MOST + "\n{1}\n")
    assert last_record(file) == "{1}"
    file.write_text("x" * (READ_AT_MOST + 9))
    assert last_record(file) == ""
    file.write_text("")
    assert last_record(file) == ""


def test_where_to_and_how_large_was_each_request(campaign: Campaign):
    """Method, host and path once for all calls; exact bytes, messages and results of each, and where it broke off."""

    def tell(telling: Telling) -> None:
        telling.start("s", "a")
        telling.message(1)
        results = (ToolResult("id1", 84_090, token="1.1.1"),)
        call = telling.request(1, body_bytes=85_562, results=results, method="POST", host="llm.test:80")
        telling.accept(call)
        telling.stalled(call, 2.0, bytes_delivered=200, body_bytes=416)
        telling.end(1, error="Error: Timeout", exit_code=1)

    page = _page(campaign, tell)
    assert "1 call to POST /v1/messages, host llm.test:80." in page
    assert "85,562 2 1 (84,090) 200, paid" in page
    assert "stalled, the agent hung up; phase: in the reply's body, after 200 of 416 bytes" in page
    assert "method and host were not recorded" in _page(Campaign(campaign.folder.parent / "old"), _lost(1))


def test_no_call_around_a_stop_is_left_out_of_a_long_table(campaign: Campaign):
    """The rows in the middle are left out, but not those around the moment when the front end gave up."""

    def tell(telling: Telling) -> None:
        telling.start("s", "a")
        telling.message(1)
        for number in range(1, 601):
            call = telling.request(1)
            telling.accept(call)
            telling.later(0.01).whole(call, stop="tool")
            if number == 400:
                telling.history.add(GaveUp(turn=1))
        telling.end(1, ended="gave up")

    page = _page(campaign, tell)
    assert "1.1.393 " in page and "1.1.408 " in page and "1.1.380 " not in page
    assert "167 calls left out here; history.jsonl holds all" in page
