"""The calls of a run as flat rows, with the names of OpenTelemetry's GenAI conventions where there is one."""

from collections.abc import Mapping
from typing import Any, Literal

from wedgehog.harness.record.history import History
from wedgehog.harness.record.judgement import Judgement
from wedgehog.harness.record.ledger import Ledger, ledger_of
from wedgehog.harness.record.store import StoredRun
from wedgehog.harness.record.views import Call
from wedgehog.reports.calls import ending, took_s

ColumnType = Literal["string", "int64", "double", "bool", "list<string>"]
"""The types of our columns, as Arrow names them."""

PROVIDERS = {
    "openai-chat": "openai",
    "openai-responses": "openai",
    "openai-realtime": "openai",
    "gemini": "gcp.gemini",
}
"""A wire format's provider as OpenTelemetry names it, where that is not the wire's own name."""


OF_HISTORY: Mapping[str, ColumnType] = {
    "gen_ai.operation.name": "string",
    "gen_ai.provider.name": "string",
    "gen_ai.request.model": "string",
    "gen_ai.request.max_tokens": "int64",
    "gen_ai.usage.input_tokens": "int64",
    "gen_ai.usage.output_tokens": "int64",
    "gen_ai.response.finish_reasons": "list<string>",
    "gen_ai.client.operation.duration": "double",
    "http.response.status_code": "int64",
    "error.type": "string",
    "wedgehog.turn": "int64",
    "wedgehog.step": "int64",
    "wedgehog.attempt": "int64",
    "wedgehog.call": "int64",
    "wedgehog.at_s": "double",
    "wedgehog.first_byte_s": "double",
    "wedgehog.tokens_delivered": "int64",
    "wedgehog.bytes_delivered": "int64",
    "wedgehog.cost_usd": "double",
    "wedgehog.ending": "string",
}
"""The columns that come from the history, with their types in Parquet."""

OF_RUN: Mapping[str, ColumnType] = {
    "gen_ai.agent.name": "string",
    "wedgehog.scenario": "string",
    "wedgehog.repeat": "int64",
}
"""The columns that are the same for all calls of a run."""


def call_rows(run: StoredRun) -> list[dict[str, Any]]:
    """One row per call of a run, those of the recovery message included."""
    same = dict(zip(OF_RUN, run_values(run.judgement), strict=True))
    return [same | dict(zip(OF_HISTORY, row, strict=True)) for row in history_rows(run.history)]


def run_values(judgement: Judgement) -> tuple[Any, ...]:
    """The values of `OF_RUN`."""
    return judgement.agent, judgement.scenario, judgement.repeat


def history_rows(history: History) -> list[tuple[Any, ...]]:
    """The values of `OF_HISTORY` for each call."""
    spent = ledger_of(history)
    return [_call_row(call, spent) for call in history.calls]


def _call_row(call: Call, spent: Ledger) -> tuple[Any, ...]:
    at, usd = call.arrived, spent.call(call.number).usd
    return (
        "chat",
        PROVIDERS.get(at.wire, at.wire),
        at.model,
        at.max_tokens,
        call.input_tokens,
        call.output_tokens,
        [call.ended.stop] if call.ended and call.whole else [],
        took_s(call),
        call.refused.status if call.refused else 200 if call.paid else None,
        _error(call),
        at.turn,
        at.step,
        at.attempt,
        call.number,
        call.at_s,
        call.ended.first_byte_s if call.ended else None,
        call.tokens_delivered,
        call.ended.bytes_delivered if call.ended else 0,
        None if usd is None else float(usd),
        ending(call),
    )


def _error(call: Call) -> str | None:
    """The provider's error, or how the reply ended; None for a whole reply."""
    if call.refused:
        return call.refused.error or str(call.refused.status)
    return None if call.whole else call.ended.how if call.ended else "no end recorded"
