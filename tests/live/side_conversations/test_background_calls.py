"""Calls beside the conversation, judged from the command on."""

from typing import Any

from wedgehog.harness.record.events.call import RequestArrived

AGENT = '''\
"""Asks the first message twice; before each later one it asks seven times for a summary of the one before."""
import json, os, sys
from plain_http import post
url, session, message = sys.argv[1:4]
path = os.path.join(session, "session.json")
talk = json.load(open(path)) if os.path.exists(path) else []
TOOL = {"name": "note", "description": "", "input_schema": {"type": "object", "properties": {}}}


def ask(messages, **more):
    body = {"model": "m", "max_tokens": 999, "messages": messages, **more}
    headers = {"x-api-key": "k", "anthropic-version": "2023-06-01"}
    return json.loads(post(url + "/v1/messages", body, headers, timeout_s=20).read())["content"]


if talk:
    for _ in range(7):
        ask([{"role": "user", "content": "Summarize: " + talk[-2]["content"]}])
else:
    ask([{"role": "user", "content": message}], tools=[TOOL])
talk.append({"role": "user", "content": message})
talk.append({"role": "assistant", "content": ask(talk, tools=[TOOL])})
json.dump(talk, open(path, "w"))
print(talk[-1]["content"][0]["text"])
'''


def played(wedgehog: Any, told: Any, agent: Any, limit: int, results: Any) -> Any:
    """Two messages and the recovery's, of an agent that may make so many calls per turn."""
    turns = [{"user": "Go on.", "model": [{"text": "Done {nonce}"}]} for _ in range(2)]
    agent(code=AGENT, limits={"calls_per_turn": limit})
    ran = wedgehog("run", told("two", turns=turns), "--agent", "mine.yaml", "--network=embedded")
    return ran, results()["two"]


def test_a_summary_at_the_start_of_a_turn_counts_for_that_turn(wedgehog: Any, told: Any, agent: Any, results: Any):
    """It quotes the turn before. Counted there, the two calls of that turn and seven summaries are over the limit."""
    ran, run = played(wedgehog, told, agent, 8, results)
    assert ran.returncode == 0, run.says
    arrived = [(event.turn, event.background) for event in run.history.of(RequestArrived)]
    assert arrived == [(1, ""), (1, ""), *[(2, "summary")] * 7, (2, ""), *[(3, "summary")] * 7, (3, "")]


def test_summaries_over_the_limit_are_red_in_the_turn_that_makes_them(
    wedgehog: Any, told: Any, agent: Any, results: Any
):
    """The same agent, allowed one call less."""
    ran, run = played(wedgehog, told, agent, 7, results)
    assert ran.returncode == 1
    assert "turn 2: 8 model requests, 7 allowed" in run.says
