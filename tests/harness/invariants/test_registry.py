"""The registry: names, parameters, and what happens to a check that crashes."""

import importlib
import pkgutil
from collections.abc import Iterator

import pytest

from wedgehog.harness import invariants
from wedgehog.harness.invariants import InvariantError, check, find, invariant, known, registry
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict, nothing, passed
from wedgehog.harness.testing import HistoryBuilder

ROOMS = [f"{invariants.__name__}.{it.name}" for it in pkgutil.iter_modules(invariants.__path__) if it.ispkg]


@pytest.fixture
def a_registry_of_its_own(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(registry, "_REGISTRY", dict(registry._REGISTRY))
    yield


def test_each_file_holds_the_invariant_of_its_name():
    """A new file needs no list, and its name is the invariant's."""
    files = {it.name for room in ROOMS for it in pkgutil.iter_modules(importlib.import_module(room).__path__)}
    assert files - {"background_subagents", "sequels"} == set(known())


def test_each_invariant_stands_in_the_room_of_its_subject():
    """Beside the rooms is only what they share; one of a plugin has no room."""
    beside = {it.name for it in pkgutil.iter_modules(invariants.__path__) if not it.ispkg}
    assert beside == {"overload", "registry", "scope", "tool_results"}
    assert {f"{invariants.__name__}.{it.room}" for it in known().values()} == set(ROOMS)
    assert find("paid_call_bound").room == "requests"


def test_an_invariant_of_a_plugin_has_no_room(a_registry_of_its_own: None):
    @invariant("of_mine")
    def of_mine(history: History) -> Verdict:
        """Mine holds."""
        return passed()

    assert find("of_mine").room == ""


def test_each_invariant_says_what_it_asks_in_one_line():
    """The docs' table is made of these lines."""
    assert all(it.doc.endswith(".") and len(it.doc) > 20 for it in known().values())


def test_each_invariant_says_how_to_fix_what_violates_it():
    """In a paragraph of its own, which is no part of what must hold."""
    assert [name for name, found in known().items() if len(found.fix) < 40 or not found.fix.endswith(".")] == []
    found = find("turn_deadline")
    assert found.fix.startswith("Set a time-out") and "Fix:" not in found.doc + found.fix


def test_parameters_are_known_with_type_default_and_unit():
    """The judge scales durations of the scenario, and leaves real seconds alone."""
    bound = find("paid_call_bound").parameters
    assert (bound["per_step"].schema, bound["per_step"].default) == ({"type": "integer", "minimum": 0}, 12)
    assert bound["calls_per_turn"].default is None
    turn_s = find("turn_deadline").parameters["turn_s"]
    assert (turn_s.schema["type"], turn_s.seconds, turn_s.scaled) == ("number", True, True)
    grace_s = find("no_spend_after_abort").parameters["grace_s"]
    assert (grace_s.seconds, grace_s.scaled) == (True, False)


def test_those_without_a_stock_number_are_told_apart():
    """Without a spec's limit they can only report."""
    assert {name for name, it in known().items() if it.reported_only} == {
        "rows_bound",
        "spend_bound",
        "tool_deadline",
    }


def test_only_what_no_agent_promises_waits_to_be_asked():
    """All others are judged on every run."""
    assert [name for name, it in known().items() if it.asked] == [
        "output_read",
        "result_durable",
        "rows_bound",
        "subagent_kept",
        "subagent_returns",
        "turn_answered",
    ]


@pytest.mark.parametrize(
    ("name", "parameters", "says"),
    [
        ("paid_cal_bound", {}, "unknown invariant 'paid_cal_bound' (did you mean 'paid_call_bound'?)"),
        ("xyz", {}, "unknown invariant 'xyz'"),
        (
            "paid_call_bound",
            {"per_stp": 5},
            "paid_call_bound has no parameter 'per_stp' (did you mean 'per_step'?); "
            "it takes per_step, zero_output, compactions, calls_without_progress, calls_per_turn",
        ),
        (
            "error_surfaced",
            {"turn_s": 5},
            "error_surfaced has no parameter 'turn_s'; it takes no parameters",
        ),
        (
            "paid_call_bound",
            {"per_step": "5"},
            "paid_call_bound: per_step: expected a whole number of at least 0, found '5'",
        ),
        (
            "paid_call_bound",
            {"per_step": 2.5},
            "paid_call_bound: per_step: expected a whole number of at least 0, found 2.5",
        ),
        ("paid_call_bound", {"per_step": None}, "paid_call_bound: per_step: expected a whole number"),
        ("turn_deadline", {"turn_s": -1}, "turn_deadline: turn_s: expected seconds of at least 0, found -1"),
        ("turn_deadline", {"turn_s": True}, "turn_deadline: turn_s: expected seconds of at least 0, found true"),
        ("work_kept", {"asked": 1}, "work_kept: asked: expected true or false, found 1"),
    ],
)
def test_a_mistake_gets_one_line_that_says_what_was_expected(name: str, parameters: dict[str, object], says: str):
    """Unknown names and parameters are the user's mistake, not the agent's."""
    with pytest.raises(InvariantError) as wrong:
        find(name).accept(parameters)
    assert str(wrong.value).startswith(says)


def test_numbers_come_back_as_their_parameter_wants_them():
    """A YAML reader may turn 5 into 5.0."""
    assert find("paid_call_bound").accept({"per_step": 5.0, "calls_per_turn": None}) == {
        "per_step": 5,
        "calls_per_turn": None,
    }
    assert find("turn_deadline").accept({"turn_s": 5}) == {"turn_s": 5}


@pytest.mark.usefixtures("a_registry_of_its_own")
def test_a_check_that_crashes_is_an_error_that_says_so():
    """A harness fault is never a pass and never blamed on the agent."""

    @invariant("crashing")
    def crashing(history: History) -> Verdict:
        """It divides by zero."""
        return passed(str(len(history.events) / 0))

    verdict = check("crashing", HistoryBuilder().seal())
    assert (verdict.status, verdict.name) == ("error", "crashing")
    assert verdict.says.startswith("the check crashing itself failed in test_registry.py, line ")
    assert verdict.says.endswith(": ZeroDivisionError: division by zero")


@pytest.mark.usefixtures("a_registry_of_its_own")
def test_an_invariant_without_words_of_its_own_passes_because_of_its_rule():
    """As one of a plugin that only says `passed()`."""

    @invariant("without_words")
    def without_words(history: History) -> Verdict:
        """There is a history."""
        return passed() if history.events is not None else nothing()

    assert check("without_words", HistoryBuilder().seal()).because == "There is a history."


def test_a_verdict_bears_its_invariants_name():
    """Reports print it beside the sentence."""
    assert check("tool_call_pairing", HistoryBuilder().seal()) == Verdict(
        "nothing", "no tool was called", (), "tool_call_pairing"
    )


@pytest.mark.parametrize("name", sorted(known()))
def test_an_empty_run_holds_nothing_to_judge(name: str):
    """Nothing is shown as a dash, never as a pass."""
    assert check(name, HistoryBuilder().seal()).status == "nothing"
