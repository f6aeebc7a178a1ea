"""Faults of a tool's result are pure functions from one result to another."""

import json

import pytest

from wedgehog.harness.faults.base import parse_fault
from wedgehog.harness.faults.parameters import FaultError
from wedgehog.harness.faults.result_fault import Result, ResultFault

RESULT = Result("21 °C", delay_s=1.0)


@pytest.mark.parametrize(
    ("do", "harmed", "at_once"),
    [
        ("lose_result", Result("21 °C", delay_s=1.0, lost=True), True),
        ({"late_result": 30}, Result("21 °C", delay_s=4.0), True),
        ("double_result", Result("21 °C", delay_s=1.0, copies=2), False),
        ({"huge_result": 5000}, Result("21 °C", delay_s=1.0, bytes=5000), False),
        ("malformed_result", Result("21 °C", delay_s=1.0, broken=True), False),
        ({"error_result": "no such city"}, Result("no such city", is_error=True, delay_s=1.0), False),
        ("empty_result", Result("21 °C", delay_s=1.0, empty=True), False),
        ("protocol_error", Result("internal error", is_error=True, delay_s=1.0, by_protocol=True), False),
        ("error_result", Result("the tool failed", is_error=True, delay_s=1.0), False),
    ],
)
def test_each_changes_one_thing(do: object, harmed: Result, at_once: bool):
    """Ten times as fast as written: only durations of the fault are shortened."""
    fault = parse_fault(do).scaled(10)
    assert isinstance(fault, ResultFault)
    assert (fault.on_result(RESULT), fault.strikes_at_once) == (harmed, at_once)
    assert fault.proof


def test_only_a_refusal_keeps_the_tool_from_running():
    """A bearer challenge, and a body that is JSON; a result would pass as it is."""
    fault = parse_fault("unauthorized")
    assert isinstance(fault, ResultFault)
    refusal = fault.on_call()
    assert refusal is not None and refusal.status == 401 and fault.on_result(RESULT) == RESULT
    assert refusal.headers["www-authenticate"].startswith('Bearer error="invalid_token"')
    assert json.loads(refusal.body)["error"] == "invalid_token"
    assert "resource_metadata=" in refusal.headers["www-authenticate"]
    without, expired = fault.on_request(authorized=False), fault.on_request(authorized=True)
    assert expired == refusal and without is not None and "Authentication required" in without.body
    late = parse_fault({"late_result": 30})
    assert isinstance(late, ResultFault) and late.on_call() is None and late.on_request(authorized=False) is None


@pytest.mark.parametrize(
    ("do", "headers"),
    [
        ({"call_status": 429}, {}),
        ({"call_status": {"code": 429, "retry_after": 25}}, {"retry-after": "3"}),
        ({"call_status": {"code": 503, "retry_after": 0}}, {"retry-after": "0"}),
    ],
)
def test_a_call_is_refused_with_any_status(do: dict[str, object], headers: dict[str, str]):
    """Ten times as fast as written; a header has whole seconds."""
    fault = parse_fault(do).scaled(10)
    assert isinstance(fault, ResultFault) and fault.on_result(RESULT) == RESULT
    refusal = fault.on_call()
    assert refusal is not None and refusal.headers == headers and str(refusal.status) in str(do)
    assert json.loads(refusal.body)["error"] in ("Too Many Requests", "Service Unavailable")


@pytest.mark.parametrize(
    ("do", "said"),
    [
        ("late_result", "late_result needs s"),
        ("huge_result", "huge_result needs bytes"),
        ({"huge_result": 0}, "bytes: expected a whole number from 1"),
        ("call_status", "call_status needs code"),
        ({"call_status": 200}, "code: expected a whole number from 400"),
        ({"late_result": -1}, "s: expected seconds of at least 0"),
    ],
)
def test_what_is_wrong_is_said(do: object, said: str):
    """In one sentence."""
    with pytest.raises(FaultError, match=said):
        parse_fault(do)
