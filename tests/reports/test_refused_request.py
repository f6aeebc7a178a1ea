"""The page shows the request that the provider refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from wedgehog.harness.record.events.call import RequestRefused
from wedgehog.harness.record.store import BODIES
from wedgehog.reports import write_folder

from .conftest import Campaign, Telling, judgement

NAME = "0123456789abcdef"
DANGLES = {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "shell", "input": {}}]}


def page(campaign: Campaign, body: Any, *, scripted: bool = False, body_hash: str = NAME) -> str:
    """The page of one run whose second turn's request was refused."""

    def tell(telling: Telling) -> None:
        telling.start("told", "mine")
        telling.answered(1)
        telling.message(2, "Go on")
        call = telling.request(2, body_hash=body_hash)
        telling.history.add(
            RequestRefused(call=call, status=400, error="e", message="no result", pairing=True, scripted=scripted)
        )
        telling.end(2, error="400", exit_code=1)

    path: Path = campaign.folder / BODIES / NAME
    path.parent.mkdir(exist_ok=True)
    path.write_text(body if isinstance(body, str) else json.dumps(body))
    campaign.run(judgement("told", "mine", "fail", violated=("tool_call_pairing",)), tell)
    write_folder(campaign.folder)
    return (campaign.folder / "report.html").read_text()


@pytest.mark.parametrize("key", ["messages", "input", "contents"])
def test_a_refused_request_is_shown_message_by_message(campaign: Campaign, key: str):
    shown = page(campaign, {"model": "m", key: [{"role": "user", "content": "Do it <b>"}, DANGLES]})
    assert "Call 2, 400: no result" in shown
    assert "toolu_1" in shown and "Do it &lt;b&gt;" in shown
    assert f"bodies/{NAME}" in shown


def test_of_a_long_conversation_the_end_is_shown(campaign: Campaign):
    shown = page(campaign, {"messages": [{"role": "user", "content": f"number {n}"} for n in range(40)]})
    assert "28 messages before these" in shown
    assert "number 28" in shown and "number 27" not in shown


@pytest.mark.parametrize(
    "secret", ["sk-proj-abcdefghijklmnop1234", "AIzaSyA1234567890abcdefgh", "Bearer abcdefgh12345678"]
)
def test_a_key_in_a_message_is_not_shown(campaign: Campaign, secret: str):
    shown = page(campaign, {"messages": [{"role": "user", "content": f"the key is {secret} ok"}]})
    assert "the key is" in shown and "[key]" in shown
    assert secret.removeprefix("Bearer ") not in shown


def test_a_key_at_the_end_of_a_long_message_is_not_shown_in_part(campaign: Campaign):
    words = "x" * 355 + " sk-proj-abcdefghijklmnop1234"
    assert "sk-proj" not in page(campaign, {"messages": [{"role": "user", "content": words}]})


@pytest.mark.parametrize("body", ["no json", "[1]", "{}", '{"messages": []}'])
def test_a_body_without_messages_shows_nothing(campaign: Campaign, body: str):
    assert "What was refused" not in page(campaign, body)


def test_a_refusal_of_the_script_shows_nothing(campaign: Campaign):
    assert "What was refused" not in page(campaign, {"messages": [DANGLES]}, scripted=True)


@pytest.mark.parametrize("name", ["", "../bodies/0123456789abcdef", "ffffffffffffffff"])
def test_only_a_body_of_this_campaign_is_read(campaign: Campaign, name: str):
    assert "What was refused" not in page(campaign, {"messages": [DANGLES]}, body_hash=name)
