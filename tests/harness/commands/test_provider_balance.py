"""A prepaid balance: bills are subtracted, and when nothing is left the provider refuses in its own words."""

import asyncio
import http.client
import json
from contextlib import closing
from decimal import Decimal
from typing import Any

import pytest

from wedgehog.fake_llm.balance import BalanceConfig
from wedgehog.harness.commands.serve import Provider, prepaid

REPLY = [{"text": "Hi there!"}, {"usage": {"input_tokens": 1000, "output_tokens": 100}}]
SAID = [{"role": "user", "content": "go"}]
GEMINI = "/v1beta/models/gemini-2.5-flash:generateContent"
ASKED: dict[str, tuple[str, dict[str, Any]]] = {
    "anthropic": ("/v1/messages", {"model": "claude-sonnet-4-6", "max_tokens": 999, "messages": SAID}),
    "openai-chat": ("/v1/chat/completions", {"model": "gpt-5", "messages": SAID}),
    "openai-responses": ("/v1/responses", {"model": "gpt-5", "input": "go"}),
    "gemini": (GEMINI, {"contents": [{"parts": [{"text": "go"}]}]}),
    "ollama": ("/api/chat", {"model": "m", "stream": False, "messages": SAID}),
}
BROKE = {
    "anthropic": (400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API."),
    "openai-chat": (429, "insufficient_quota", "You exceeded your current quota, please check your plan and billing"),
    "openai-responses": (429, "insufficient_quota", "You exceeded your current quota, please check your plan"),
    "gemini": (429, "RESOURCE_EXHAUSTED", "Your prepayment credits are depleted."),
    "ollama": (402, "", "you have used up your prepaid balance"),
}
HEADERS = {"x-api-key": "k", "anthropic-version": "2023-06-01"}


def ask(llm: Provider, wire: str, session: str, **more: Any) -> tuple[int, Any]:
    host, port = llm.url.removeprefix("http://").split(":")
    path, body = ASKED[wire]
    with closing(http.client.HTTPConnection(host, int(port), timeout=10)) as connection:
        connection.request("POST", f"/s/{session}{path}", json.dumps(body | more), HEADERS)
        response = connection.getresponse()
        return response.status, json.loads(response.read())


@pytest.mark.parametrize("wire", ASKED)
def test_each_provider_says_it_in_its_own_words(wire: str):
    """The call that uses it up is still answered; from then on every one is refused, and costs nothing."""
    with Provider({"balance": {"tokens": 2000}, "replies": [{"reply": REPLY}]}) as llm:
        statuses = [ask(llm, wire, "red")[0] for _ in range(3)]
        status, told = ask(llm, wire, "red")
        other, _ = ask(llm, wire, "blue")
        ledger = llm.ledger("red")
        left = llm.balance("red")
    wanted, kind, words = BROKE[wire]
    error = told["error"] if wire != "ollama" else {"message": told["error"]}
    assert statuses == [200, 200, wanted] and status == wanted
    assert error["message"].startswith(words)
    assert kind in {error.get("type", ""), error.get("status", "")} | {error.get("code")}
    assert other == 200, "each session has its own"
    assert left == {"unit": "tokens", "prepaid": 2000.0, "left": -200.0}
    assert [entry["accepted"] for entry in ledger] == [True, True, False, False]


def test_dollars_are_drawn_by_the_models_price():
    """1,000 tokens in at $3 and 100 out at $15 a million are $0.0045."""
    with Provider({"balance": {"usd": 0.009}, "replies": [{"reply": REPLY}]}) as llm:
        ask(llm, "anthropic", "red")
        half = llm.balance("red")
        statuses = [ask(llm, "anthropic", "red")[0] for _ in range(2)]
    assert half == {"unit": "usd", "prepaid": 0.009, "left": 0.0045}
    assert statuses == [200, 400]


def test_a_model_without_a_price_is_billed_as_another():
    """A model without a price is not free."""
    with Provider({"balance": {"usd": 1, "price_as": "claude-sonnet-4-6"}, "replies": [{"reply": REPLY}]}) as llm:
        ask(llm, "anthropic", "red", model="nobodys-model")
        left = llm.balance("red")
    assert left and left["left"] == pytest.approx(1 - 0.0045)


def test_given_prices_win():
    """In dollars for a million tokens."""
    words = BalanceConfig(usd=1, input_usd_per_mtok=10, output_usd_per_mtok=1000)
    balance = words.balance()
    balance.spend("claude-sonnet-4-6", 1000, 100)
    assert balance.left == Decimal("0.89")


def test_what_was_generated_is_paid_although_it_never_came():
    """A reply that is cut costs what it costs whole."""
    fault = {"do": {"cut": "rst"}, "at": {"byte": 1}}
    with Provider({"balance": {"tokens": 5000}, "replies": [{"reply": REPLY, "fault": fault}]}) as llm:
        with pytest.raises((ConnectionResetError, http.client.HTTPException)):
            ask(llm, "anthropic", "red")
        left = llm.balance("red")
    assert left and left["left"] == 3900


def test_a_reset_and_another_script_make_it_whole():
    """The balance is full again."""
    script = {"balance": {"tokens": 10}, "replies": [{"reply": REPLY}]}
    with Provider(script) as llm:
        statuses = [ask(llm, "anthropic", "red")[0] for _ in range(2)]
        llm.reset("red")
        statuses += [ask(llm, "anthropic", "red")[0] for _ in range(2)]
        llm.put(script, "red")
        statuses += [ask(llm, "anthropic", "red")[0] for _ in range(2)]
        llm.put({"replies": [{"reply": REPLY}]})
        statuses += [ask(llm, "anthropic", "red")[0] for _ in range(2)]
    assert statuses == [200, 400, 200, 400, 200, 400, 200, 200]


def test_options_of_the_command_replace_the_scripts_balance():
    """One of both units."""
    with Provider({"replies": [{"reply": REPLY}]}, balance=prepaid(None, 0)) as llm:
        assert ask(llm, "anthropic", "red")[0] == 400
    assert prepaid(0.5, None) == BalanceConfig(usd=0.5) and prepaid(None, None) is None
    with pytest.raises(ValueError, match="not in both"):
        prepaid(1, 1)


@pytest.mark.parametrize("words", [{}, {"usd": 1, "tokens": 1}, {"usd": 1, "input_usd_per_mtok": 1}, {"usd": -1}])
def test_a_balance_without_sense_is_refused(words: dict[str, float]):
    """One unit, and both prices or none."""
    with pytest.raises(ValueError, match=r"expected|greater"):
        BalanceConfig(**words)


async def test_parallel_calls_draw_from_one_balance():
    """Parallel requests after it is used up are all refused."""
    async with Provider({"balance": {"tokens": 3300}, "replies": [{"reply": REPLY}]}) as llm:
        asked = [asyncio.to_thread(ask, llm, "openai-chat", "red") for _ in range(3)]
        first = sorted(status for status, _ in await asyncio.gather(*asked))
        assert (first, (await asyncio.to_thread(ask, llm, "openai-chat", "red"))[0]) == ([200] * 3, 429)
