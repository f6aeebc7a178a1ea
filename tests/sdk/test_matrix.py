"""Official SDKs, current and previous, make of every reply what was said."""

from __future__ import annotations

import json
import os
import shutil
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from tests.sdk.conftest import is_there

pytestmark = pytest.mark.sdk

HOW = ("whole", "streamed")
STATUSES = (401, 404, 429, 500, 529)
OPENAI = {
    401: "AuthenticationError",
    404: "NotFoundError",
    429: "RateLimitError",
    500: "InternalServerError",
    529: "InternalServerError",
}


@dataclass(frozen=True)
class Entry:
    """A driver, the SDK that it runs with, how that calls the end of a text and of a call, and what it raises."""

    driver: str
    sdk: str
    text: str
    tool: str
    raised: Mapping[int, str]
    lists_models: bool = True
    keeps_headers: bool = True

    def __str__(self) -> str:
        return f"{self.driver.replace(' ', '-')}-{self.sdk}"


CHAT, RESPONSES, MESSAGES = ("stop", "tool_calls"), ("completed", "completed"), ("end_turn", "tool_use")
GEMINI, OLLAMA, AI = ("STOP", "STOP"), ("stop", "stop"), ("stop", "tool-calls")
OVERLOADED = OPENAI | {529: "OverloadedError"}
GOOGLE = dict.fromkeys((401, 404, 429), "ClientError") | dict.fromkeys((500, 529), "ServerError")
API_CALL, API, RESPONSE = (dict.fromkeys(STATUSES, name) for name in ("APICallError", "ApiError", "ResponseError"))
JAVASCRIPT = ("js-current", "js-earlier")
TABLE: list[tuple[str, tuple[str, ...], tuple[str, str], Mapping[int, str], dict[str, bool]]] = [
    ("openai_chat.py", ("openai-3", "openai-1"), CHAT, OPENAI, {}),
    ("openai_chat.mjs", JAVASCRIPT, CHAT, OPENAI, {}),
    ("openai_responses.py", ("openai-3", "openai-1"), RESPONSES, OPENAI, {}),
    ("openai_responses.mjs", JAVASCRIPT, RESPONSES, OPENAI, {}),
    ("anthropic_messages.py", ("anthropic-2", "anthropic-0"), MESSAGES, OVERLOADED, {}),
    ("anthropic_messages.mjs", ("js-current",), MESSAGES, OVERLOADED, {}),
    ("anthropic_messages.mjs", ("js-earlier",), MESSAGES, OPENAI, {}),
    ("gemini.py", ("google-genai-3", "google-genai-1"), GEMINI, GOOGLE, {}),
    ("gemini.mjs", JAVASCRIPT, GEMINI, API, {"keeps_headers": False}),
    ("ollama_chat.py", ("ollama-0",), OLLAMA, RESPONSE, {"keeps_headers": False}),
    ("ollama_chat.mjs", ("js-current",), OLLAMA, RESPONSE, {"keeps_headers": False}),
    ("ai.mjs openai_chat", JAVASCRIPT, AI, API_CALL, {"lists_models": False}),
    ("ai.mjs openai_responses", JAVASCRIPT, AI, API_CALL, {"lists_models": False}),
    ("ai.mjs anthropic", JAVASCRIPT, AI, API_CALL, {"lists_models": False}),
    ("ai.mjs gemini", JAVASCRIPT, AI, API_CALL, {"lists_models": False}),
]
SDKS = sorted({sdk for _, sdks, *_ in TABLE for sdk in sdks})
THERE = {sdk for sdk in SDKS if is_there(sdk)}
ENTRIES = [
    Entry(driver, sdk, *stops, raised, **more)
    for driver, sdks, stops, raised, more in TABLE
    for sdk in sdks
    if sdk in THERE
]
OPENAI_SDKS = [sdk for sdk in ("openai-3", "openai-1") if sdk in THERE]
MORE = [
    ("openai_chat.py", "embeddings", [2, True, True]),
    ("openai_responses.py", "kept", [True, "user", "gone"]),
    ("anthropic_messages.py", "tokens counted", True),
    ("gemini.py", "tokens counted", True),
    ("ollama_chat.py", "shown", True),
]


@pytest.mark.parametrize("sdk", SDKS)
def test_an_sdk_is_there(sdk: str) -> None:
    """Those of other generations and languages are skipped, unless they are required."""
    if sdk not in THERE:
        needed = os.environ.get("WEDGEHOG_REQUIRE_SDKS") and (shutil.which("npm") or not sdk.startswith("js-"))
        missing = f"{sdk} is not installed; `nox -s sdk` installs it (JavaScript's with npm) and runs this"
        (pytest.fail if needed else pytest.skip)(missing)


@pytest.fixture(params=ENTRIES, ids=str, scope="module")
def entry(request: pytest.FixtureRequest) -> Entry:
    """Each SDK with each of its APIs."""
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def told(told_by: Any, entry: Entry) -> Any:
    """What the SDK told in a case."""

    def of(case: str) -> Any:
        said = told_by(entry.driver, entry.sdk)[case]
        assert "failed" not in said, said["failed"]
        return said["told"]

    return of


@pytest.mark.parametrize("how", HOW)
def test_text_arrives_whole(told: Any, entry: Entry, quiz: Any, how: str) -> None:
    """Emoji and combining characters too; streamed, it comes in several pieces, none with half of a character."""
    said = told(f"text, {how}")
    assert (said["text"], said["calls"], said["stop"]) == (quiz.TEXT, [], entry.text)
    if how == "streamed":
        assert "".join(said["pieces"]) == quiz.TEXT
        assert len(said["pieces"]) > 5
        assert not any("\ud800" <= char <= "\udfff" for piece in said["pieces"] for char in piece)
        assert not any(unicodedata.combining(piece[0]) or piece[0] in "\u200d🏽" for piece in said["pieces"])


@pytest.mark.parametrize("how", HOW)
def test_one_call_and_several_arrive_with_their_arguments(told: Any, entry: Entry, quiz: Any, how: str) -> None:
    """Each call has an id of its own, the tool's name, and arguments that are read to what was said."""
    one, several = told(f"tool, {how}"), told(f"tools, {how}")
    for said, cities in ((one, quiz.CITIES[:1]), (several, quiz.CITIES)):
        assert [json.loads(arguments) for _, _, arguments in said["calls"]] == [{"city": city} for city in cities]
        assert {name for _, name, _ in said["calls"]} == {"get_weather"}
        assert len({id_ for id_, _, _ in said["calls"]}) == len(cities)
        assert said["stop"] == entry.tool
    assert (one["text"], several["text"]) == ("", quiz.TEXT)


@pytest.mark.parametrize("how", HOW)
def test_results_go_back_in_a_second_turn(told: Any, entry: Entry, how: str) -> None:
    """What the SDK made of a reply is taken back as history, with a result for each call."""
    said = told(f"second turn, {how}")
    assert said["text"].startswith("2 results: ")
    assert (said["text"].count("21 °C 👩‍🚀"), said["stop"]) == (2, entry.text)


@pytest.mark.parametrize("how", HOW)
def test_usage_is_what_the_script_says(told: Any, how: str) -> None:
    """In a stream as well."""
    assert [told(f"{case}, {how}")["usage"] for case in ("text", "tool", "tools", "second turn")] == [[1234, 56]] * 4


@pytest.mark.parametrize("how", HOW)
def test_errors_are_raised_as_what_they_are(told: Any, entry: Entry, how: str) -> None:
    """The SDK's own class, the status, the provider's message, and Retry-After where it was sent."""
    for status in STATUSES:
        said = told(f"error {status}, {how}")
        assert (said["status"], said["raised"]) == (status, entry.raised[status])
        assert said["message"] == f"No: {status} 🦔"
        assert said["retry_after"] == ("7" if status == 429 and entry.keeps_headers else None)


@pytest.mark.parametrize("lister", [entry for entry in ENTRIES if entry.lists_models], ids=str)
def test_models_are_listed(told_by: Any, lister: Entry, quiz: Any) -> None:
    """Those that the fake was given."""
    assert told_by(lister.driver, lister.sdk)["models"] == {"told": list(quiz.MODELS)}


@pytest.mark.parametrize(("driver", "case", "expected"), MORE)
def test_what_else_an_sdk_asks_for_is_there(told_by: Any, driver: str, case: str, expected: Any) -> None:
    """Both generations: embeddings, responses that are kept, token counts, what a model is."""
    for entry in (entry for entry in ENTRIES if entry.driver == driver):
        assert told_by(driver, entry.sdk)[case] == {"told": expected}


@pytest.mark.parametrize("generation", OPENAI_SDKS)
def test_an_earlier_response_can_be_named(told_by: Any, quiz: Any, generation: str) -> None:
    """It stands for its history; one that is not kept is a 400 of its own code."""
    told = told_by("openai_responses.py", generation)
    assert told["second turn by id"]["told"]["text"].startswith("2 results: ")
    unknown = told["an unknown earlier response"]["told"]
    assert (unknown["status"], unknown["message"]) == (400, "Previous response with id 'resp_0' not found.")


def test_accumulators_of_the_sdks_agree_with_their_events(told_by: Any, quiz: Any) -> None:
    """What the SDK's own helper gathers from a stream is what was said."""
    for generation in OPENAI_SDKS:
        told = told_by("openai_chat.py", generation)["streamed by the helper"]["told"]
        assert told["text"] == quiz.TEXT
        assert [json.loads(arguments)["city"] for _, _, arguments in told["calls"]] == list(quiz.CITIES)
    beta = told_by("anthropic_messages.py", "anthropic-2")["a beta message"]["told"]
    assert beta["stop"] == "tool_use"
    assert told_by("ollama_chat.py", "ollama-0")["generated"] == {"told": quiz.TEXT}
