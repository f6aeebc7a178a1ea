"""Agents whose model writes its tool calls in text: correct ones pass, and each bug has its name."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.live.together import Found, entry

AGENTS = Path(__file__).with_name("textual_agents.py")
REACT = {
    "calls_in_text": {"shell": "Thought: {words}\nAction: shell\nAction Input: {command}"},
    "finish": {"text": "Thought: I know.\nFinal Answer: {answer}"},
}
FENCED = {"calls_in_text": {"shell": "```bash\n{command}\n```"}}
TAGGED = {
    "calls_in_text": {"shell": "<execute_command>\n<command>{command}</command>\n</execute_command>"},
    "finish": {"text": "<attempt_completion>\n<result>{answer}</result>\n</attempt_completion>"},
}
KINDS: dict[str, dict[str, Any]] = {
    "scratchpad": REACT,
    "fenced": FENCED,
    "tagged": TAGGED,
    "loses_results": REACT,
    "runs_again": FENCED,
    "runs_twice": FENCED,
    "runs_halves": TAGGED,
    "forgets": TAGGED,
    "silent": FENCED,
    "patient": REACT,
    "believes": REACT,
    "never_tires": REACT,
    "says_nothing": TAGGED,
}
MISFORMED = (
    "answer-in-plain-words-once",
    "answer-in-plain-words-always",
    "text-call-with-a-made-up-result",
    "text-call-without-its-input-once",
    "text-call-without-its-input-always",
)
PLAYED = (
    "command-fails",
    "command-never-ends",
    "command-prints-nothing",
    "command-prints-a-lot",
    "endless-tool-calls",
    "overloaded-after-tool",
    "rate-limited-once",
    "server-error-always",
    "stall-after-tool",
)


@pytest.fixture
def specs(tmp_path: Path) -> Any:
    """Writes specs of these agents; what names them on the command line."""

    def write(*names: str) -> list[str]:
        for name in names:
            spec = {"name": name, "wire": "openai-chat", "callable": f"{AGENTS}:{name}", "recover_s": 0, **KINDS[name]}
            (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(spec))
        return [word for name in names for word in ("--agent", f"{name}.yaml")]

    return write


def stands(tmp_path: Path) -> dict[tuple[str, str], tuple[str, ...]]:
    """The violated invariants of each run, else its verdict, or why it was skipped."""
    found = {}
    for file in (tmp_path / "runs" / "latest").glob("*/*/verdicts.json"):
        told = json.loads(file.read_text())
        found[told["scenario"], told["agent"]] = tuple(told["violated"]) or (told["skipped"] or told["verdict"],)
    return found


@pytest.fixture
def simulated(simulate: Any, specs: Any, tmp_path: Path) -> Any:
    """Plays pairs of a scenario and an agent in virtual time: what `stands` reads of a campaign."""

    def played(*pairs: tuple[str, str]) -> dict[tuple[str, str], tuple[str, ...]]:
        specs(*{name for _, name in pairs})
        found: Found = simulate([entry(story, tmp_path / f"{name}.yaml") for story, name in pairs], tmp_path / "runs")
        return {pair: it.violated or (it.skipped or it.verdict,) for pair, it in found.items()}

    return played


def test_calls_in_text_are_run_and_each_bug_has_its_name(simulated: Any):
    """A command that is killed or prints nothing has no last line by which its result could be known."""
    sane = [(story, name) for name in ("scratchpad", "fenced", "tagged") for story in PLAYED]
    buggy = [("command-prints-a-lot", "loses_results"), ("overloaded-after-tool", "runs_again")]
    found = simulated(*sane, *buggy, ("command-fails", "runs_twice"), ("server-error-always", "silent"))
    assert {pair: found[pair] for pair in sane} == dict.fromkeys(sane, ("pass",))
    assert "tools_alive" in found["command-prints-a-lot", "loses_results"]
    assert "at_most_once_tools" in found["overloaded-after-tool", "runs_again"]
    assert found["command-fails", "runs_twice"] == ("at_most_once_tools",)
    assert "error_surfaced" in found["server-error-always", "silent"]


def test_a_model_that_misses_the_form_shows_each_bug(simulated: Any):
    """A correct agent asks again, for a while, and then says so."""
    sane = [(story, name) for name in ("scratchpad", "tagged", "patient") for story in MISFORMED]
    invented, always = ("text-call-with-a-made-up-result", "believes"), ("answer-in-plain-words-always", "never_tires")
    silent = [(story, "says_nothing") for story in ("answer-in-plain-words-once", "text-call-without-its-input-once")]
    found = simulated(*sane, invented, always, *silent)
    assert {pair: found[pair] for pair in sane} == dict.fromkeys(sane, ("pass",))
    assert "no_invented_result" in found[invented]
    assert "paid_call_bound" in found[always]
    assert [found[pair] for pair in silent] == [("error_surfaced",)] * 2


def test_an_agent_that_takes_any_text_for_the_answer_has_no_form_to_miss(wedgehog: Any, specs: Any, tmp_path: Path):
    """What it does with a made-up result is judged all the same."""
    wedgehog("run", *MISFORMED, *specs("fenced"), "--world=sim")
    found = stands(tmp_path)
    plain = "the agent's model ends its turns with plain text (finish)"
    assert found["answer-in-plain-words-once", "fenced"] == found["answer-in-plain-words-always", "fenced"] == (plain,)
    assert found["text-call-without-its-input-always", "fenced"] == (plain,)
    assert found["text-call-with-a-made-up-result", "fenced"] == ("pass",)


def test_a_session_in_text_is_kept(wedgehog: Any, specs: Any, tmp_path: Path):
    """A team that ships an agent wants that of it: an earlier turn is in later requests."""
    wedgehog("run", "key-expires-in-a-session", *specs("tagged", "fenced", "forgets"), "--world=sim", "--level=strict")
    found = stands(tmp_path)
    assert found["key-expires-in-a-session", "tagged"] == found["key-expires-in-a-session", "fenced"] == ("pass",)
    assert "history_kept" in found["key-expires-in-a-session", "forgets"]


def test_a_call_that_was_cut_is_not_run(wedgehog: Any, specs: Any, tmp_path: Path):
    """The reply ends in the middle of the command; a shell that dies prints no last line."""
    agents = specs("tagged", "runs_halves")
    wedgehog("run", "call-cut-by-max-tokens", "command-dies", *agents, "--network=embedded")
    found = stands(tmp_path)
    assert found["command-dies", "tagged"] == ("pass",)
    assert found["call-cut-by-max-tokens", "tagged"] == ("pass",)
    assert "no_half_calls" in found["call-cut-by-max-tokens", "runs_halves"]


def test_what_text_cannot_show_is_skipped_with_its_reason(wedgehog: Any, specs: Any, tmp_path: Path):
    """Text has no arguments in JSON and no ids, and one reply has one call."""
    wedgehog("run", "garbage-arguments", "poisoned-tool-result", "one-of-two-tools-fails", *specs("fenced"))
    said = {of: told for (of, _), (told,) in stands(tmp_path).items()}
    own = "the model writes its tool calls in text, and the fault changes tool calls of the wire (calls_in_text)"
    assert said == {
        "garbage-arguments": own,
        "poisoned-tool-result": own,
        "one-of-two-tools-fails": "the model writes its tool calls in text, one in a reply (calls_in_text)",
    }
