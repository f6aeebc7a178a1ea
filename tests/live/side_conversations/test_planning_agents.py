"""Agents that ask for a plan or a check by a schema: correct ones pass, and each bug has its name."""

import json
from pathlib import Path
from typing import Any

import yaml

AGENTS = Path(__file__).with_name("planning_agents.py")
SOUND = ("plans", "guards", "fenced")
PLANS = ("plan-in-a-fence-once", "plan-of-another-shape-always")
TITLES = ("title-fails", "title-is-empty", "title-stalls")


FINISH: dict[str, Any] = {"guards": {"with": {"safe": True}}}
FINISH |= {name: {"text": '{"say": "{answer}"}'} for name in ("in_words", "swallows")}
SHAPES = ("in-a-fence-once", "of-another-shape-once", "of-another-shape-always")


def played(
    wedgehog: Any, tmp_path: Path, *names: str, scenarios: tuple[str, ...] = (*PLANS, *TITLES)
) -> dict[tuple[str, str], tuple[str, ...]]:
    """The violated invariants of each run, or its verdict."""
    words = []
    for name in names:
        spec = {"name": name, "wire": "openai-chat", "callable": f"{AGENTS}:{name}", "recover_s": 0}
        spec |= {"finish": FINISH[name]} if name in FINISH else {}
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(spec))
        words += ["--agent", f"{name}.yaml"]
    done = wedgehog("run", *scenarios, *words, "--world", "sim")
    assert done.returncode in (0, 1, 3), done.stdout + done.stderr
    found = {}
    for file in (tmp_path / "runs" / "latest").glob("*/*/verdicts.json"):
        told = json.loads(file.read_text())
        assert not told["skipped"], told
        found[told["scenario"], told["agent"]] = tuple(told["violated"]) or (told["verdict"],)
    return found


def test_a_plan_that_cannot_be_read_and_a_check_that_fails_are_survived(wedgehog: Any, tmp_path: Path):
    """To go on without a plan, to ask again, and to refuse what cannot be checked are all correct."""
    found = played(wedgehog, tmp_path, *SOUND)
    assert len(found) == 15 and {*found.values()} == {("pass",)}


def test_an_apology_and_plans_without_end_have_their_names(wedgehog: Any, tmp_path: Path):
    """The apology hides the failure; a plan is asked for 30 times at most."""
    found = played(wedgehog, tmp_path, "apologizes", "insists")
    bad = {of: violated for of, violated in found.items() if violated != ("pass",)}
    assert bad == {
        ("plan-in-a-fence-once", "apologizes"): ("error_surfaced",),
        ("plan-of-another-shape-always", "apologizes"): ("error_surfaced",),
        ("plan-of-another-shape-always", "insists"): ("side_call_bound",),
        ("title-is-empty", "apologizes"): ("error_surfaced", "turn_answered"),
        ("title-is-empty", "insists"): ("side_call_bound",),
    }


def test_without_a_chosen_value_a_guard_refuses_each_message(wedgehog: Any, tmp_path: Path):
    """The spec's author reads what is missing."""
    spec = {"name": "guards", "wire": "openai-chat", "callable": f"{AGENTS}:guards", "recover_s": 0}
    (tmp_path / "guards.yaml").write_text(yaml.safe_dump(spec))
    done = wedgehog("run", "stall-once", "--agent", "guards.yaml", "--world", "sim")
    assert "`finish: {with: {…}}`" in done.stdout + done.stderr


def test_json_that_is_asked_for_in_words_is_broken_too(wedgehog: Any, tmp_path: Path):
    """To ask again and to say that it cannot be read are correct; an empty success is not."""
    shapes = tuple(f"structured-reply-{it}" for it in SHAPES)
    found = played(wedgehog, tmp_path, "in_words", "swallows", scenarios=shapes)
    bad = {of: violated for of, violated in found.items() if violated != ("pass",)}
    assert bad == {("structured-reply-of-another-shape-always", "swallows"): ("error_surfaced",)}
