"""What a scenario's `do:` may say, and what it is told when it can't be understood."""

from dataclasses import MISSING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wedgehog.harness.faults.base import parameters, parse_fault, registered
from wedgehog.harness.faults.parameters import FaultError
from wedgehog.harness.faults.reply.other_answers import StatusReply
from wedgehog.harness.faults.wire.cut import Cut
from wedgehog.harness.faults.wire.slow import Drip
from wedgehog.harness.faults.wire.stall import Stall


@pytest.mark.parametrize(
    ("do", "fault"),
    [
        ("stall", Stall("forever")),
        ({"stall": "forever"}, Stall("forever")),
        ({"stall": 30}, Stall(30)),
        ({"stall": {"for_s": 0.5}}, Stall(0.5)),
        ({"cut": "rst"}, Cut("rst")),
        ({"drip": {"every_s": 2, "bytes": 5}}, Drip(2, 5)),
        ({"status": 429}, StatusReply(429)),
        ({"status": {"code": 503, "retry_after": "date:5"}}, StatusReply(503, "date:5")),
        ({"refuse": {}}, registered()["refuse"]()),
    ],
)
def test_a_fault_is_written_by_name_by_main_parameter_or_by_all(do, fault):
    """`do: stall`, `do: {stall: 30}` and `do: {stall: {for_s: 30}}` all work."""
    assert parse_fault(do) == fault


@pytest.mark.parametrize(
    ("do", "says"),
    [
        ("cutt", "no fault is called 'cutt' (did you mean 'cut'?)"),
        ({"cut": "rts"}, "cut: then: expected `fin` or `rst`, found 'rts' (did you mean 'rst'?)"),
        ({"cut": {"than": "rst"}}, "cut has no parameter 'than' (did you mean 'then'?); it takes then"),
        ("drip", "drip needs every_s: write `drip: {every_s: …}`"),
        ({"stall": -1}, "stall: for_s: expected `forever` or seconds of at least 0, found -1"),
        ({"stall": True}, "stall: for_s: expected `forever` or seconds of at least 0, found true"),
        (
            {"stall": "forver"},
            "stall: for_s: expected `forever` or seconds of at least 0, found 'forver' (did you mean 'forever'?)",
        ),
        ({"drip": -1}, "drip: every_s: expected seconds above 0, found -1"),
        ({"drip": 0}, "drip: every_s: expected seconds above 0, found 0"),
        ({"latency": float("nan")}, "latency: s: expected seconds of at least 0, found .nan"),
        ({"latency": "3"}, "latency: s: expected seconds of at least 0, found '3'"),
        ({"kill": {"tear": 1}}, "kill: tear: expected true or false, found 1"),
        ({"huge_result": 0}, "huge_result: bytes: expected a whole number from 1 to 200,000,000, found 0"),
        ({"drip": {"every_s": 1, "bytes": 1.5}}, "drip: bytes: expected a whole number of at least 1, found 1.5"),
        ({"status": 200}, "status: code: expected a whole number from 400 to 599, found 200"),
        (
            {"status": {"code": 429, "retry_after": "soon"}},
            "status: retry_after must be seconds or date:SECONDS, not 'soon'",
        ),
        ({"abort": 3}, "abort takes no parameters, found 3"),
        ({"stall": 1, "cut": "fin"}, "a fault is a name or one `name: value`, found the keys stall, cut"),
        (7, "a fault is a name or one `name: value`, found 7"),
    ],
)
def test_a_mistake_gets_one_sentence_that_says_what_was_expected(do, says):
    """Also types and ranges; the message fits on a line."""
    with pytest.raises(FaultError) as caught:
        parse_fault(do)
    assert str(caught.value) == says


def test_an_unknown_word_far_from_all_is_told_what_there_is():
    """No guess is better than a wild one."""
    with pytest.raises(FaultError, match="there are abort, bad_certificate, balance, "):
        parse_fault("xyzzy")


def test_durations_shrink_with_the_time_scale_and_words_stay():
    """Every `Seconds` of a fault is divided; `forever` and counts are not."""
    assert parse_fault({"stall": 30}).scaled(10) == Stall(3)
    assert parse_fault("stall").scaled(10) == Stall("forever")
    assert parse_fault({"drip": {"every_s": 3, "bytes": 7}}).scaled(2) == Drip(1.5, 7)
    assert parse_fault({"slow": {"s": 4, "s_per_kb": 2}}).scaled(2) == parse_fault({"slow": {"s": 2, "s_per_kb": 1}})


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(), lambda it: st.dictionaries(st.text(), it)))
def test_no_input_makes_the_parser_stumble(value):
    """Whatever a YAML file holds, the result is a fault or a FaultError."""
    for name in registered():
        try:
            assert parse_fault({name: value}).name == name
        except FaultError as error:
            assert "\n" not in str(error) or isinstance(value, str | dict)


def test_every_fault_has_a_sentence_and_described_parameters():
    """Each has a sentence for the docs, and its parameters in order."""
    says = [(cls.__doc__ or "").strip().splitlines()[0] for cls in registered().values()]
    assert all(it.endswith((".", ":")) and len(it) > 20 for it in says)
    drip = parameters(registered()["drip"])
    assert [(name, it.default) for name, it in drip.items()] == [("every_s", MISSING), ("bytes", 1)]
    assert [(it.scaled, it.schema) for it in drip.values()] == [
        (True, {"type": "number", "exclusiveMinimum": 0, "description": "seconds"}),
        (False, {"type": "integer", "minimum": 1}),
    ]


@pytest.mark.parametrize("make", [lambda: Stall(-1), lambda: Drip(1, bytes=0), lambda: Cut("sideways")])
def test_a_fault_that_is_made_in_code_is_checked_too(make):
    """A fault is valid from its start."""
    with pytest.raises(FaultError, match="expected"):
        make()


def test_two_faults_cannot_share_a_name():
    """The second is refused when it is defined."""
    from wedgehog.harness.faults.base import fault

    with pytest.raises(FaultError, match="two faults are called cut"):
        fault("cut", family="wire")(Stall)
