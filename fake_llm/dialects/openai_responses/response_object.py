"""The response object of OpenAI's Responses API: at its start, at its end, and as the provider stores it."""

from __future__ import annotations

from typing import Any, Final

from wedgehog.fake_llm.dialects.base import Exchange, is_whole, stop_of
from wedgehog.fake_llm.dialects.openai_responses.validate import Stored, StoredItem, given
from wedgehog.fake_llm.ids import made_up
from wedgehog.fake_llm.reply import Reply, Text, Thinking
from wedgehog.fake_llm.request import listed, mapped
from wedgehog.fake_llm.usage import arguments, tokens_in

_ECHOED: Final[dict[str, Any]] = {
    "background": False,
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "reasoning": {"effort": None, "summary": None},
    "safety_identifier": None,
    "store": True,
    "temperature": 1.0,
    "text": {"format": {"type": "text"}, "verbosity": "medium"},
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "top_p": 1.0,
    "truncation": "disabled",
    "user": None,
}


def _id(kind: str, exchange: Exchange, index: int = 0) -> str:
    return f"{kind}_{made_up(kind, exchange.request.call, index, length=50, small=True)}"


def started(exchange: Exchange, **more: Any) -> dict[str, Any]:
    """Return the response object before its first item, with the fields `more`."""
    document = exchange.request.document or {}
    echoed = {name: document.get(name) if document.get(name) is not None else _ECHOED[name] for name in _ECHOED}
    return {
        "id": _id("resp", exchange),
        "object": "response",
        "created_at": exchange.created_s,
        "status": "in_progress",
        "completed_at": None,
        "error": None,
        "incomplete_details": None,
        "model": exchange.conversation.model,
        "output": [],
        "service_tier": "default",
        "usage": None,
        **echoed,
        **more,
    }


def finished(reply: Reply, exchange: Exchange) -> dict[str, Any]:
    """Return the finished response object; store it unless the request says `store: false`."""
    output = [_item(reply, index, exchange) for index in range(len(reply.items))]
    reason = _unfinished(reply)
    body = started(
        exchange,
        status="incomplete" if reason else "completed",
        completed_at=None if reason else exchange.created_s,
        incomplete_details={"reason": reason} if reason else None,
        output=output,
        usage=_usage(reply, exchange),
    )
    if body["store"]:
        document, memory = exchange.request.document or {}, exchange.request.memory
        memory.keep(body["id"], Stored(body, given(document), str(document.get("previous_response_id") or "")))
        for index, item in enumerate(output):
            reasoned = index > 0 and output[index - 1]["type"] == "reasoning"
            memory.keep(item["id"], StoredItem(item, output[index - 1]["id"] if reasoned else ""))
    return body


def _unfinished(reply: Reply) -> str:
    if stop_of(reply) == "refusal" and not reply.items:
        return "content_filter"
    return "max_output_tokens" if stop_of(reply) == "max_tokens" else ""


def _usage(reply: Reply, exchange: Exchange) -> dict[str, Any]:
    billed = exchange.billed
    thought = sum(tokens_in(item.text) for item in reply.items if isinstance(item, Thinking))
    return {
        "input_tokens": billed.input_tokens,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": billed.output_tokens,
        "output_tokens_details": {"reasoning_tokens": min(thought, billed.output_tokens)},
        "total_tokens": billed.input_tokens + billed.output_tokens,
    }


def _item(reply: Reply, index: int, exchange: Exchange) -> dict[str, Any]:
    item, status = reply.items[index], "completed" if is_whole(reply, index) else "incomplete"
    if isinstance(item, Thinking):
        summary = [{"type": "summary_text", "text": item.text}] if _summarizes(exchange) else []
        sealed = {"encrypted_content": f"gAAAA{made_up(item.text, length=59)}"} if _seals(exchange) else {}
        return {"id": _id("rs", exchange, index), "type": "reasoning", "summary": summary, **sealed}
    if isinstance(item, Text):
        part = _part(reply, item.text)
        ids = {"id": _id("msg", exchange, index), "type": "message"}
        return {**ids, "status": status, "content": [part], "role": "assistant"}
    return {
        "id": _id("fc", exchange, index),
        "type": "function_call",
        "status": status,
        "arguments": arguments(item.args, item.raw_args),
        "call_id": f"call_{item.id or made_up('tool', exchange.request.call, index, length=24)}",
        "name": item.name,
    }


def _part(reply: Reply, text: str) -> dict[str, Any]:
    if stop_of(reply) == "refusal":
        return {"type": "refusal", "refusal": text}
    return {"type": "output_text", "annotations": [], "logprobs": [], "text": text}


def _summarizes(exchange: Exchange) -> bool:
    """Return True if the request asks for reasoning summaries; else reasoning is hidden."""
    return bool(mapped((exchange.request.document or {}).get("reasoning")).get("summary"))


def _seals(exchange: Exchange) -> bool:
    return "reasoning.encrypted_content" in listed((exchange.request.document or {}).get("include"))


def opening(item: dict[str, Any]) -> dict[str, Any]:
    """Return an item before its first delta."""
    empty = {"content": [], "arguments": "", "summary": [], "status": "in_progress"}
    return {name: empty.get(name, value) for name, value in item.items()}
