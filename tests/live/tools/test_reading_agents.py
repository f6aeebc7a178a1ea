"""Agents that read pages of the web: correct ones pass, and each bug has its name."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

AGENTS = Path(__file__).with_name("reading_agents.py")
SOUND = ("careful", "hasty", "digests", "guarded")
PAGES = ("page-never-comes", "page-comes-in-drips", "page-is-huge", "page-is-missing", "page-cannot-be-reached")


def stands(tmp_path: Path) -> dict[tuple[str, str], tuple[str, ...]]:
    """The violated invariants of each run, else its verdict, or `skipped`."""
    found = {}
    for file in (tmp_path / "runs" / "latest").glob("*/*/verdicts.json"):
        told = json.loads(file.read_text())
        verdict = "skipped" if told["skipped"] else told["verdict"]
        found[told["scenario"], told["agent"]] = tuple(told["violated"]) or (verdict,)
    return found


@pytest.fixture
def specs(tmp_path: Path) -> Any:
    """Writes specs of these agents; what names them on the command line."""

    def write(*names: str, **words: Any) -> list[str]:
        for name in names:
            spec = {"name": name, "wire": "anthropic", "callable": f"{AGENTS}:{name}", "recover_s": 0}
            if words:
                command = ["{python}", str(AGENTS), name, "{llm_url}", "{session_dir}", "{message}"]
                spec = {"name": name, "wire": "anthropic", "command": command, "recover_s": 0, **words}
            (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(spec))
        return [word for name in names for word in ("--agent", f"{name}.yaml")]

    return write


def test_a_page_that_fails_is_a_result_and_each_bug_has_its_name(wedgehog: Any, specs: Any, tmp_path: Path):
    """No timer, a timer for silence only, a page or an error that is not cut, a failure that ends the turn."""
    agents = specs(*SOUND, "patient", "waits_for_bytes", "never_cuts", "cuts_only_pages", "breaks")
    done = wedgehog("run", *PAGES, *agents, "--world", "sim")
    assert done.returncode == 1, done.stdout + done.stderr
    found = stands(tmp_path)
    hung, broken = ("session_recovers", "tool_call_pairing"), ("session_recovers", "tool_call_pairing", "turn_answered")
    deadline = ("turn_deadline",)
    assert {of: violated for of, violated in found.items() if violated not in (("pass",), ("skipped",))} == {
        ("page-never-comes", "patient"): deadline,
        ("page-never-comes", "breaks"): hung,
        ("page-comes-in-drips", "patient"): deadline,
        ("page-comes-in-drips", "waits_for_bytes"): deadline,
        ("page-comes-in-drips", "breaks"): hung,
        ("page-is-huge", "never_cuts"): ("tool_result_bound",),
        ("page-is-missing", "never_cuts"): ("tool_result_bound",),
        ("page-is-missing", "cuts_only_pages"): ("tool_result_bound",),
        ("page-cannot-be-reached", "breaks"): broken,
    }
    assert {of for of, verdict in found.items() if verdict == ("skipped",)} == {(it, "guarded") for it in PAGES}


def test_a_stop_does_not_wait_for_a_page(wedgehog: Any, specs: Any, tmp_path: Path):
    """The page never comes; an agent that looks at its stop between two requests never ends."""
    agents = specs("careful", "deaf", abort="SIGINT", limits={"turn_s": 8})
    wedgehog("run", "abort-while-a-page-loads", *agents, "--network=embedded")
    found = stands(tmp_path)
    assert found["abort-while-a-page-loads", "careful"] == ("pass",)
    assert "turn_deadline" in found["abort-while-a-page-loads", "deaf"]
