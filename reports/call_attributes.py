"""The calls of a run as flat rows, with the names of OpenTelemetry's GenAI conventions where there is one."""

from typing import Any

from wedgehog.harness.record.ledger import Ledger, ledger_of
from wedgehog.harness.record.store import StoredRun
from wedgehog.harness.record.views import Call
from wedgehog.reports.calls import ending, took_s

PROVIDERS = {"openai-chat": "openai", "openai-responses": "openai", "gemini": "gcp.gemini"}
"""A wire format's provider as OpenTelemetry names it, where that is not the wire's own name."""


def call_rows(run: StoredRun) -> list[dict[str, Any]]:
    """One row per call of a run, those of the recovery message included."""
    spent = ledger_of(run.history)
    return [_call_row(run, call, spent) for call in run.history.calls]


def _call_row(run: StoredRun, call: Call, spent: Ledger) -> dict[str, Any]:
    at, usd = call.arrived, spent.call(call.number).usd
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": PROVIDERS.get(at.wire, at.wire),
        "gen_ai.agent.name": run.judgement.agent,
        "gen_ai.request.model": at.model,
        "gen_ai.request.max_tokens": at.max_tokens,
        "gen_ai.usage.input_tokens": call.input_tokens,
        "gen_ai.usage.output_tokens": call.output_tokens,
        "gen_ai.response.finish_reasons": [call.ended.stop] if call.ended else [],
        "gen_ai.client.operation.duration": took_s(call),
        "http.response.status_code": call.refused.status if call.refused else 200 if call.paid else None,
        "error.type": _error(call),
        "wedgehog.scenario": run.judgement.scenario,
        "wedgehog.repeat": run.judgement.repeat,
        "wedgehog.turn": at.turn,
        "wedgehog.step": at.step,
        "wedgehog.attempt": at.attempt,
        "wedgehog.call": call.number,
        "wedgehog.at_s": call.at_s,
        "wedgehog.first_byte_s": call.ended.first_byte_s if call.ended else None,
        "wedgehog.tokens_delivered": call.tokens_delivered,
        "wedgehog.bytes_delivered": call.ended.bytes_delivered if call.ended else 0,
        "wedgehog.cost_usd": None if usd is None else float(usd),
        "wedgehog.ending": ending(call),
    }


def _error(call: Call) -> str | None:
    """The provider's error, or how the reply ended; None for a whole reply."""
    if call.refused:
        return call.refused.error or str(call.refused.status)
    return None if call.whole else call.ended.how if call.ended else "no end recorded"
