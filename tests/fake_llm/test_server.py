"""What holds for every provider: paths, keys, bodies, headers, lenience and scripts that fail."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from wedgehog.fake_llm.conversation import Conversation
from wedgehog.fake_llm.observer import RefusalSent, RequestSeen, WriteEnded, WriteStarted
from wedgehog.fake_llm.observer import RequestUnscripted as UnscriptedSeen
from wedgehog.fake_llm.reply import Answer, Failure, Reply, Text, Thinking, ToolCall, UnscriptedError


class Raises:
    def __init__(self, error: Exception) -> None:
        self._error = error

    def answer(self, call: int, conversation: Conversation) -> Answer:
        raise self._error


@pytest.mark.parametrize("error", [UnscriptedError("no line fits"), KeyError("no line fits")])
async def test_a_script_without_an_answer_is_said_to_be_so(
    open_llm: Any, ask: Any, recorder: Any, provider: Any, error: Exception
) -> None:
    """The client gets a 500 in the provider's shape with the reason, and the fact is reported."""
    received = await ask(await open_llm(Raises(error)), provider)
    assert received.status == 500
    assert "no line fits" in received.error[1]
    assert "no line fits" in recorder.all(UnscriptedSeen)[0].why
    assert recorder.all(WriteStarted) == []


async def test_a_scripted_failure_is_told_as_such(open_llm: Any, ask: Any, recorder: Any, provider: Any) -> None:
    """The fact tells status, kind and message as the client reads them."""
    received = await ask(await open_llm(Failure(429, retry_after=2.5)), provider)
    (refused,) = recorder.all(RefusalSent)
    assert received.headers["retry-after"] == "2.5"
    assert (refused.status, refused.scripted, refused.pairing, refused.retry_after) == (429, True, False, 2.5)
    assert (refused.kind, refused.message) == received.error


@pytest.mark.parametrize(
    ("asked", "sent"),
    [(2, "2"), (3600, "3600"), ("date:30", "Fri, 02 Jan 2026 03:04:35 GMT"), ("soon", "soon"), (None, None)],
)
async def test_retry_after_is_sent_in_the_form_asked_for(
    open_llm: Any, ask: Any, provider: Any, asked: Any, sent: str | None
) -> None:
    """Seconds, a date that many seconds from now, any text, or no header at all."""
    received = await ask(await open_llm(Failure(529, retry_after=asked)), provider)
    assert received.headers.get("retry-after") == sent


async def test_keys_are_known_by_fingerprint_alone(open_llm: Any, ask: Any, recorder: Any, provider: Any) -> None:
    """The same key has the same short print; the key itself is in no fact."""
    llm = await open_llm()
    await ask(llm, provider, headers={**provider.headers, "User-Agent": "me/1"})
    (seen,) = recorder.all(RequestSeen)
    assert (len(seen.key), seen.user_agent) == (8, "me/1")
    assert "sk-canary" not in repr(recorder.facts)
    assert seen.size == len(seen.body) > 0


async def test_a_lenient_server_answers_and_records(open_llm: Any, ask: Any, recorder: Any, provider: Any) -> None:
    """A request that the provider refuses is reported as not enforced, and answered."""
    received = await ask(await open_llm(strict=False), provider, **provider.orphan)
    (refused,) = recorder.all(RefusalSent)
    assert received.status == 200
    assert (refused.enforced, refused.pairing) == (False, provider.wire != "ollama")
    assert len(recorder.all(WriteStarted)) == 1


async def test_a_lenient_server_still_cannot_read_nonsense(
    open_llm: Any, ask: Any, recorder: Any, provider: Any
) -> None:
    """A body that is no request gets its 400 from a lenient server too."""
    received = await ask(await open_llm(strict=False), provider, b"nonsense")
    assert received.status == 400
    assert recorder.all(RequestSeen)[0].conversation is None


async def test_unknown_models_are_missing_only_where_models_are_listed(open_llm: Any, ask: Any, provider: Any) -> None:
    """With `models` an unknown one is missing in the provider's words; without, every name is answered."""
    any_model, listed = await open_llm(), await open_llm(models=["m", "n"])
    received = await ask(listed, provider, model="z")
    assert received.status == provider.model_missing
    assert "z" in received.error[1]
    assert (await ask(listed, provider)).status == 200
    assert (await ask(any_model, provider, model="z")).status == 200


async def test_models_are_listed_in_the_shape_of_the_dialect(
    open_llm: Any, ask: Any, recorder: Any, neighbour: Any
) -> None:
    """One path of two dialects, distinguished by headers; it is no call of a model and costs nothing."""
    llm = await open_llm(models=["m", "n"])
    received = await ask(llm, neighbour, b"", path="/v1/models", method="GET")
    one = await ask(llm, neighbour, b"", path="/v1/models/n", method="GET")
    none = await ask(llm, neighbour, b"", path="/v1/models/z", method="GET")
    shapes: dict[str, dict[str, Any]] = {
        "anthropic": {"has_more": False, "first_id": "m", "last_id": "n"},
        "openai-chat": {"object": "list"},
        "openai-responses": {"object": "list"},
    }
    assert [model["id"] for model in received.json["data"]] == ["m", "n"]
    assert shapes[neighbour.wire].items() <= received.json.items()
    assert (one.json["id"], none.status) == ("n", 404)
    assert recorder.all(WriteStarted) == []
    assert recorder.all(RequestSeen)[0].conversation is None


async def test_models_are_listed_for_those_with_a_key(open_llm: Any, ask: Any, neighbour: Any) -> None:
    """Without a key the list is a 401 in the neighbour's shape."""
    received = await ask(await open_llm(), neighbour, b"", path="/v1/models", method="GET", headers=neighbour.keyless)
    assert received.status == 401
    assert received.error[1]


async def test_an_unknown_path_is_missing_in_the_providers_shape(open_llm: Any, ask: Any, provider: Any) -> None:
    """Any method, HEAD without a body."""
    llm = await open_llm()
    got = await ask(llm, provider, b"", path="/nowhere", method="GET")
    head = await ask(llm, provider, b"", path="/", method="HEAD")
    assert (got.status, head.status) == (404, 404)
    assert "/nowhere" in got.error[1]
    assert int(head.headers["content-length"]) > 0


async def test_compressed_bodies_are_read(open_llm: Any, ask: Any, provider: Any) -> None:
    """gzip is taken as it comes; what only claims to be gzip is a 400 in the provider's shape."""
    llm = await open_llm()
    headers = {**provider.headers, "Content-Encoding": "gzip"}
    packed = gzip.compress(json.dumps(provider.request()).encode())
    assert (await ask(llm, provider, packed, headers=headers)).status == 200
    broken = await ask(llm, provider, b"no gzip at all", headers=headers)
    assert broken.status == 400
    assert "could not be decoded" in broken.error[1]


async def test_large_bodies_are_read_up_to_a_limit(open_llm: Any, ask: Any, recorder: Any, provider: Any) -> None:
    """Five megabytes are an ordinary history; more than 64 are refused with the provider's status, in its shape."""
    llm = await open_llm()
    assert (await ask(llm, provider, text="x" * 5_000_000)).status == 200
    headers = {**provider.headers, "Content-Encoding": "gzip"}
    too_large = await ask(llm, provider, gzip.compress(bytes(2**26 + 1), 1), headers=headers)
    assert too_large.status == (400 if provider.wire == "gemini" else 413)
    assert too_large.error[1]


async def test_an_emoji_never_arrives_as_half(open_llm: Any, ask: Any, provider: Any) -> None:
    """Each delta of a streamed text is whole characters as a reader sees them."""
    text = "👩‍🚀🇫🇷👍🏽é" * 9
    received = await ask(await open_llm(Reply((Text(text),))), provider, stream=True)
    deltas = [provider.delta(data) for _, data in received.events if isinstance(data, dict)]
    said = [delta for delta in deltas if delta]
    assert "".join(said) == text
    assert len(said) == 9
    assert set(said) == {"👩‍🚀🇫🇷👍🏽é"}


async def test_a_delayed_reply_of_a_failure_waits_too(open_llm: Any, ask: Any, clock: Any, provider: Any) -> None:
    """`delay_s` of a failure passes before its first byte."""
    await ask(await open_llm(Failure(500, delay_s=3)), provider)
    assert clock.slept == [3]


async def test_calls_are_numbered_over_all_connections(open_llm: Any, ask: Any, recorder: Any, provider: Any) -> None:
    """The first request is 1, and each reply's end bears its number."""
    llm = await open_llm()
    for _ in range(3):
        await ask(llm, provider)
    await recorder.wait_for(WriteEnded, 3)
    assert [seen.call for seen in recorder.all(RequestSeen)] == [1, 2, 3]
    assert [ended.call for ended in recorder.all(WriteEnded)] == [1, 2, 3]


@pytest.mark.parametrize("stream", [True, False])
async def test_half_a_character_is_no_trouble(open_llm: Any, ask: Any, provider: Any, stream: bool) -> None:
    """As a model's name and in what is said on both sides: JSON can hold it, UTF-8 cannot. Anthropic refuses it."""
    named = {} if provider.wire == "gemini" else {"model": "\ud83e"}
    reply = Reply((Thinking("\ud83e"), Text("\ud83e"), ToolCall("\ud83e", {"a": "\ud83e"})))
    if provider.wire == "anthropic":
        assert (await ask(await open_llm(reply), provider, text="\ud83e", stream=stream)).status == 400
    llm = await open_llm(reply, strict=False)
    received = await ask(llm, provider, text="\ud83e", stream=stream, **named)
    assert received.status == 200
    assert received.events if stream else received.json
