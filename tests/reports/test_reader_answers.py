"""The list of what a reader asks first of a run: each answer is said, and so is that something is not known."""

import json
import re
from html import unescape

import pytest

from wedgehog.harness.record.events.call import OpenToolCall, ToolCallOffered, ToolResult
from wedgehog.harness.record.events.run import AgentStarted, ConnectionsWatched, HostRefused
from wedgehog.harness.record.events.service import BeaconSeen
from wedgehog.harness.record.events.turn import AgentKilled
from wedgehog.reports import write_folder

from .conftest import Campaign, Tell, Telling, judgement, storm

RESULT = (ToolResult("id1", 40, token="1.1.1"),)
OPEN = (OpenToolCall("id2", "1.1.2"),)


def _list(campaign: Campaign, tell: Tell, **files: str) -> str:
    """The list of one run as text; `files` are its session files."""
    campaign.run(judgement("s", "a"), tell)
    for name, text in files.items():
        path = campaign.folder / "s" / "a" / name.replace("__", "/").replace("_dot_", ".").replace("_", "-")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    write_folder(campaign.folder)
    page = (campaign.folder / "report.html").read_text(encoding="utf-8")
    found = re.search(r"What a reader asks</h4>(.*?)</dl>", page, re.DOTALL)
    assert found is not None
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", found[1])).split())


def _tools(*later: dict[str, object]) -> Tell:
    """A reply with two tool calls, of which one ends, and a turn for each later request."""

    def tell(telling: Telling) -> None:
        telling.start("s", "a")
        telling.message(1)
        call = telling.request(1, open_calls=(), turns_seen=(1,))
        telling.accept(call)
        offered = (ToolCallOffered("1.1.1", "shell", True), ToolCallOffered("1.1.2", "shell", True))
        telling.whole(call, stop="tool", tool_calls=offered)
        for token, phase in (("1.1.1", "started"), ("1.1.1", "done"), ("1.1.2", "started")):
            telling.history.add(BeaconSeen(token=token, phase=phase))
        telling.later(2.0).end(1, error="Error: Timeout", exit_code=1)
        for number, said in enumerate(later, 2):
            telling.message(number)
            call = telling.request(number, **said)
            telling.accept(call)
            telling.whole(call, "Yes?")
            telling.end(number, "Yes?")

    return tell


def test_each_message_is_said_to_be_answered_once_or_not_or_more_often(campaign: Campaign):
    """Alike messages share one sentence."""

    def tell(telling: Telling) -> None:
        telling.start("s", "a")
        telling.answered(1, said="Three files. heron-violet-48211 ")
        for turn in (2, 3):
            telling.message(turn)
            telling.end(turn, error="Error: lost", exit_code=1)
        telling.answered(4, "recovery")

    said = _list(campaign, tell)
    assert "Turn 1: answered 2 times." in said
    assert "Turn 2 to turn 3, each: not answered (surfaced)." in said
    assert "The recovery message: answered once." in said


@pytest.mark.parametrize(
    ("took_s", "said"),
    [
        (13.0, "First error: after the deadline of turn 1, 13.0 s after the message of turn 1, 13.0 s after its first"),
        (9.0, "First error: 9.00 s after the message of turn 1"),
    ],
)
def test_an_error_after_the_deadline_is_an_error_that_the_user_saw(campaign: Campaign, took_s: float, said: str):
    """The turn counts as silent, and ends by itself: nothing stopped it in the time that a busy machine is given."""

    def tell(telling: Telling) -> None:
        telling.start("s", "a", turn_s=10.0)
        telling.message(1)
        call = telling.request(1)
        telling.accept(call)
        telling.stalled(call, took_s)
        telling.end(1, error="Error: Timeout", exit_code=1)

    assert said in _list(campaign, tell)


def test_the_first_error_and_the_recovery_count_from_the_message_as_well(campaign: Campaign):
    """The agent's start is part of what a user waits."""
    said = _list(campaign, storm(2, "a"))
    assert "First error: 0.56 s after the message of turn 1, 0.16 s after its first request." in said
    assert "the recovery message was answered 0.80 s after it was given, 0.50 s after its first request." in said


def test_what_a_request_no_longer_carries_is_said(campaign: Campaign):
    """A result that is gone, a call without a result that was removed, a message that was forgotten."""
    said = _list(
        campaign,
        _tools(
            {"results": RESULT, "open_calls": OPEN, "turns_seen": (1, 2)},
            {"results": (), "open_calls": (), "turns_seen": (3,)},
        ),
    )
    assert "The first request after turn 1 (2.1.1) carried 1.1.2 without a result." in said
    assert "Request 3.1.1 (call 3) no longer carried 1 tool result, of tool call 1.1.1; " in said
    assert "carried neither tool call 1.1.2 nor a result of it; no longer carried the message of turn 1, 2." in said
    assert "1.1.1 = id1, 1.1.2 = id2." in said


def test_a_reply_whose_tool_calls_were_thrown_away_is_a_removal(campaign: Campaign):
    """Also if no request ever carried them; but where open calls were not recorded, nothing is claimed of them."""
    dropped = _list(campaign, _tools({"open_calls": (), "turns_seen": (1, 2)}))
    assert "Request 2.1.1 (call 2) carried neither tool call 1.1.1, 1.1.2 nor a result of it." in dropped
    old = _list(Campaign(campaign.folder.parent / "old"), _tools({"turns_seen": (1, 2)}))
    assert "Nothing was removed: each of 1 later request carried what the one before it carried; " in old
    assert "; the results of 1.1.1, 1.1.2 were never in one." in old
    assert "tool calls without a result were not recorded in this run" in old


def test_a_turn_that_goes_on_behind_a_later_message_has_forgotten_nothing(campaign: Campaign):
    """After its user gave up, an agent may still work on the first message: that request knows no second one."""

    def tell(telling: Telling) -> None:
        _tools({"open_calls": (), "turns_seen": (2,)})(telling)
        call = telling.request(1, 2, results=RESULT, open_calls=OPEN, turns_seen=(1,))
        telling.accept(call)
        telling.whole(call, "Done.")

    said = _list(campaign, tell)
    assert "Request 2.1.1 (call 2) carried neither tool call 1.1.1, 1.1.2 nor a result of it" in said
    assert "(call 3)" not in said


def test_a_hang_up_after_a_silence_fits_both_kinds_of_timer_and_one_in_mid_stream_does_not(campaign: Campaign):
    """The time since the last byte stands beside the time since the request."""
    said = _list(campaign, storm(2, "a"))
    assert "hung up on 2 calls 54 ms after the request; no byte of a body had arrived." in said
    assert "It had waited for the first byte, so a timer of the whole call or one of inactivity fits" in said

    def tell(telling: Telling) -> None:
        telling.start("s", "a")
        telling.message(1)
        call = telling.request(1)
        telling.accept(call)
        telling.later(58.0).stalled(call, 2.0, bytes_delivered=200, body_bytes=416, first_byte_s=58.0)
        telling.end(1, error="Error: Timeout", exit_code=1)

    total = _list(Campaign(campaign.folder.parent / "other"), tell)
    since = "at least 2.00 s after the last byte of a body that arrived."
    assert f"call 1.1.1 60.0 s after the request, and {since}" in total
    assert "The two times differ in 1.1.1" in total

    def twice(telling: Telling) -> None:
        tell(telling)
        telling.message(2)
        call = telling.request(2)
        telling.accept(call)
        telling.later(0.0).stalled(call, 3.0)
        telling.end(2, error="Error: Timeout", exit_code=1)

    both = _list(Campaign(campaign.folder.parent / "both"), twice)
    assert "2.00 s after the last byte of a body that arrived; no byte of a body had arrived in 1 of them." in both


def test_session_files_tell_their_dangling_calls_at_the_kill_and_at_the_end(campaign: Campaign):
    """A call whose id nothing else in the file names is dangling; a torn last record is said to be torn."""
    call = json.dumps({"message": {"content": [{"type": "toolCall", "id": "c1"}]}})
    result = json.dumps({"role": "toolResult", "toolCallId": "c1"})
    said = _list(
        campaign,
        storm(1, "a"),
        session_at_kill_1__log_dot_jsonl=f'{call}\n{{"half',
        session__log_dot_jsonl=f"{call}\n{result}\n",
        session__calls_dot_json=json.dumps([{"tool_calls": [{"id": "x", "type": "function"}, {"id": "y"}]}]),
    )
    assert "At the kill, log.jsonl: 1 record, 1 tool call without a result: c1; its last record is torn; no " in said
    assert "At the end, log.jsonl: 2 records, a result for each of 1 tool call; no record holds a status, so" in said
    assert "At the end, calls.json: one JSON document, 2 tool calls without a result: x, y; no record holds" in said
    assert "The file has changed since the last kill." in said


def test_a_status_in_a_session_file_is_told_and_whether_the_file_changed_after_the_kill(campaign: Campaign):
    """The last record with a status counts; a later one of another kind has none."""
    text = "".join(json.dumps(it) + "\n" for it in ({"status": "idle"}, {"status": "running"}, {"type": "note"}))
    said = _list(campaign, storm(1, "a"), session_at_kill_1__log_dot_jsonl=text, session__log_dot_jsonl=text)
    assert "At the kill, log.jsonl: 3 records, no tool call; its status is “running”. At the end, " in said
    assert said.count("its status is “running”. The file is the same as at the last kill.") == 1


def test_the_agents_own_amounts_stand_beside_ours(campaign: Campaign):
    """The sums of what each record has; numbers that are no amounts, and files without any, are left out."""
    book = "".join(json.dumps({"attempt": n, "model": "m", "output_tokens": 100}) + "\n" for n in range(3))
    said = _list(campaign, storm(2, "a"), session__book_dot_jsonl=book)
    assert "book.jsonl: 3 records, in sum output_tokens 300; no record holds an amount of money." in said
    assert "By our count: 3 paid calls (with 1 of the recovery message, which the numbers above" in said
    assert "24,000 input and 120 output tokens, simulated cost $" in said
    assert "So book.jsonl has 300 of 120 output tokens." in said
    assert "None known: no session file holds amounts" in _list(
        Campaign(campaign.folder.parent / "other"), storm(2, "a")
    )


def test_records_of_the_agents_books_that_hold_only_zeros_are_counted_and_money_is_noticed(campaign: Campaign):
    """An agent that books no tokens for what it paid is found out by its own file."""
    records = [{"input_tokens": 0, "output_tokens": 0, "usd": 0}] * 2 + [
        {"input_tokens": 9, "output_tokens": 1, "usd": 0}
    ]
    said = _list(campaign, storm(2, "a"), session__book_dot_jsonl="".join(json.dumps(it) + "\n" for it in records))
    assert "in sum input_tokens 9, output_tokens 1, usd 0; 2 of them hold only zeros. By our count" in said
    assert "So book.jsonl has 9 of 24,000 input tokens and 1 of 120 output tokens." in said


@pytest.mark.parametrize(
    ("scale", "latency", "says"),
    [
        (1.0, 0.1, "latency_s 0.20 s in sum; 30% of the 0.66 s in which the agent worked."),
        (1.0, 0.5, "1.00 s in sum; more than the 0.66 s in which the agent worked, so they overlapped."),
        (10.0, 0.1, "30% of the 0.66 s in which the agent worked if these are real seconds. If they"),
        (10.0, 0.5, "more than the 0.66 s in which the agent worked. So these are seconds of the scenario"),
    ],
)
def test_the_share_of_the_queries_in_the_agents_own_books_says_by_which_clock(
    campaign: Campaign, scale: float, latency: float, says: str
):
    """A sum that is longer than the run can't be in real seconds; else both shares are told."""
    book = "".join(json.dumps({"queries": 45, "latency_s": latency}) + "\n" for _ in range(2))
    said = _list(campaign, storm(2, "a", time_scale=scale), session__work_dot_jsonl=book)
    assert "No query went through a database of the harness, so it measured none; what follows is from the" in said
    assert "work.jsonl: 90 queries in 2 records, latency_s" in said and says in said


@pytest.mark.parametrize(
    "words", ["attempt budget: 8 attempts in one run, not trying again", "no answer after 5 tool rounds", "max retries"]
)
def test_other_words_for_a_limit_are_known(campaign: Campaign, words: str):
    def tell(telling: Telling) -> None:
        storm(1, "a")(telling)
        telling.message(3)
        telling.end(3, error=f"Error: {words}", exit_code=1)

    assert f"name a limit: “Error: {words}”" in _list(campaign, tell)


def test_a_limit_that_the_agent_names_is_quoted_with_the_calls_after_it(campaign: Campaign):
    """And where none is named, that is said."""
    said = _list(campaign, storm(2, "a"))
    assert "Its words name no breaker and no limit of attempts, rounds or cost." in said
    assert "No timer of its spec is known to have ended a call or a turn." in said

    def tell(telling: Telling) -> None:
        telling.start("s", "a")
        telling.message(1)
        call = telling.request(1)
        telling.accept(call)
        telling.stalled(call, 2.0)
        telling.end(1, error="error: idle-timeout breaker: 5 in a row, giving up", exit_code=1)
        telling.answered(2)
        telling.answered(3, "recovery")

    named = _list(Campaign(campaign.folder.parent / "other"), tell)
    assert "(exit code 1) name a limit: “error: idle-timeout breaker: 5 in a row, giving up”." in named
    assert "After them came 1 call, and 1 of the recovery message." in named


def test_a_tool_call_that_ran_again_after_a_restart_is_said(campaign: Campaign):
    """Beside the number of starts; a call that reports nothing is not known."""

    def tell(telling: Telling) -> None:
        _tools()(telling)
        telling.history.add(AgentKilled(turn=1, signal="SIGKILL", whom="tree", pids=(1,)))
        telling.history.add(AgentStarted(argv=("a",), executable="a", pid=2))
        telling.history.add(BeaconSeen(token="1.1.2", phase="started"))

    assert "Yes: 1.1.2 ran 2 times. The agent was started 2 times." in _list(campaign, tell)
    once = _list(Campaign(campaign.folder.parent / "other"), _tools())
    assert "ran once each. The agent was started once." in once and "was reported" not in once


def test_tool_calls_of_which_no_run_is_reported_are_said_with_their_results(campaign: Campaign):
    """Such as the agent's own tools: the requests show that they ended."""

    def tell(telling: Telling) -> None:
        telling.start("s", "a")
        telling.message(1)
        call = telling.request(1)
        telling.accept(call)
        offered = (ToolCallOffered("1.1.1", "update", True), ToolCallOffered("1.1.2", "update", True))
        telling.whole(call, stop="tool", tool_calls=offered)
        call = telling.request(1, 2, results=RESULT)
        telling.accept(call)
        telling.whole(call, "Done.")
        telling.end(1, "Done.")

    assert "2 tool calls may have run unseen" in (said := _list(campaign, tell))
    assert "Later requests carry a result of 1 of them." in said


def test_refused_hosts_are_named_and_without_a_private_network_they_are_not_watched(campaign: Campaign):
    """`None` is said only of an agent whose network is its spec's."""

    def tell(telling: Telling) -> None:
        storm(1, "a")(telling)
        telling.history.add(HostRefused(host="evil.test", why="not in hosts"))

    assert "It asked for evil.test and was refused." in _list(campaign, tell)
    other = Campaign(campaign.folder.parent / "other")
    assert "Not watched: its spec has no `hosts`" in _list(other, storm(1, "a"))


def test_connections_to_other_machines_are_told_as_they_were_looked_for(campaign: Campaign):
    """`None seen` comes with the number of looks, because a short connection can be missed."""
    for name, others, says in (("none", (), "None seen"), ("one", ("192.0.2.1:443",), "connected to 192.0.2.1:443.")):

        def tell(telling: Telling, others: tuple[str, ...] = others) -> None:
            storm(1, "a")(telling)
            telling.history.add(ConnectionsWatched(looks=24, every_s=0.2, others=others))

        said = _list(Campaign(campaign.folder.parent / name), tell)
        assert says in said and "Looked for in 24 looks, one every 0.2 s: a shorter connection can be missed." in said


def test_an_agent_in_a_private_network_asked_for_no_other_host(campaign: Campaign):
    private = Campaign(campaign.folder.parent / "private")
    assert "None: it asked for no host" in _list(private, storm(1, "a"), agent_dot_yaml="name: a\nhosts: {}\n")


def test_paid_calls_are_summed_by_provider_and_model(campaign: Campaign):
    """Without the recovery message, like every number of the scenario."""
    said = _list(campaign, storm(3, "a"))
    spent = "24,120 tokens billed, simulated cost $0.074: claude-sonnet-4-6 3 calls, $0.074."
    assert f"anthropic: 3 paid calls, {spent}" in said


def test_each_start_is_listed_and_what_is_not_known_is_said(campaign: Campaign):
    """The arguments of every start, the client that the requests name, the version, and the kind of the hash."""

    def tell(telling: Telling) -> None:
        telling.start("s", "a")
        telling.message(1)
        telling.request(1, user_agent="sdk/1.2")
        telling.history.add(AgentStarted(argv=("python", "agent.py", "--resume"), executable="/usr/bin/python3.11"))

    campaign.run(judgement("s", "a"), tell)
    campaign.run(judgement("s", "b"), storm(1, "b"))
    write_folder(campaign.folder)
    page = (campaign.folder / "report.html").read_text(encoding="utf-8")
    words = " ".join(unescape(re.sub(r"<[^>]+>", " ", page)).split())
    assert "client that its requests name sdk/1.2" in words and "client that its requests name not known" in words
    assert (
        "start 2, recorded at 0 s, pid not known: python agent.py --resume ; the entry file's SHA-256 is not" in words
    )
    assert "SHA-256 of that file 9b1f0e6c2d7a4e55" in words and words.count("Each start") == 1


def test_hostile_files_and_words_of_an_agent_break_no_page(campaign: Campaign):
    """A number beyond all floats is no amount; a very long line is searched once, and cut around the words."""

    def tell(telling: Telling) -> None:
        storm(1, "a")(telling)
        telling.message(3)
        telling.end(3, error="x" * 300_000 + " breaker open", exit_code=1)

    said = _list(campaign, tell, session__book_dot_jsonl='{"cost": 1' + "0" * 400 + '}\n{"cost": 1}\n')
    assert "None known" in said and "xxx breaker open”" in said
