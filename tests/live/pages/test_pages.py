"""An agent with a page: a browser shows what its user sees, and the verdicts are about that."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

pytest.importorskip("playwright")

from tests.browsers import has_browser
from tests.live.together import JOBS

AGENT = Path(__file__).with_name("paged.py")


@pytest.fixture(scope="module", autouse=True)
def _needs_a_browser() -> None:
    if not has_browser():
        pytest.skip("no browser is installed")


@pytest.fixture
def environment(environment: dict[str, str], warm_python: str) -> dict[str, str]:
    """All of these agents import the same client: their processes are forked from one that has imported it."""
    return environment | {"WEDGEHOG_TEST_PYTHON": warm_python}


STORIES: dict[str, dict[str, set[str]]] = {
    "page-is-loaded-again": {
        "sound": set(),
        "anew": set(),
        "shows-nothing": set(),
        "twice": {"answered_once"},
        "knows-nothing": {"session_remembers"},
    },
    "page-loses-its-connection": {
        "sound": set(),
        "spins": {"turn_deadline"},
        "dead": {"error_surfaced"},
        "holes": {"truncation_noticed"},
    },
    "page-loses-its-connection-later": {"sound": set(), "shows-again": set(), "dead": {"error_surfaced"}},
    "page-clock-is-ahead": {
        "sound": set(),
        "by-clock": {"error_surfaced", "session_recovers", "turn_answered"},
    },
    "front-end-goes-away-in-mid-reply": {
        "sound": set(),
        "looks-idle": set(),
        "stays-busy": {"turn_deadline", "session_recovers"},
    },
    "answer-comes-while-user-is-in-another-chat": {
        "sound": set(),
        "lists": set(),
        "stays-empty": set(),
        "one-id": {"sessions_apart"},
    },
    "user-comes-back-before-the-answer": {
        "sound": set(),
        "locks": set(),
        "loads": set(),
        "ignores": set(),
        "stops": set(),
        "shows-half": set(),
        "follows": {"sessions_apart"},
        "stops-unseen": {"error_surfaced"},
    },
}
"""The agents that play a scenario, with what is red at level `safe`."""


FORGETFUL = {
    "page-is-loaded-again": {"anew", "shows-nothing"},
    "front-end-goes-away-in-mid-reply": {"looks-idle"},
    "page-loses-its-connection-later": {"shows-again"},
    "answer-comes-while-user-is-in-another-chat": {"stays-empty", "one-id"},
    "user-comes-back-before-the-answer": {"shows-half"},
}
"""The agents in which `page_kept` is red, at level `strict`."""


def _shows_pictures(campaign: Path, told: list[dict[str, Any]]) -> None:
    """Each turn has one in its run's folder; the report has those of runs that did not pass."""
    kept = {it["agent"]: list(campaign.glob(f"{it['scenario']}/{it['agent']}/page-*.jpg")) for it in told}
    assert all(kept.values()), kept
    failed = sum(len(kept[it["agent"]]) for it in told if it["verdict"] != "pass")
    assert (campaign / "report.html").read_text().count('<img src="data:image/jpeg;base64,') == failed


@pytest.mark.parametrize("story", STORIES)
def test_a_planted_bug_is_red_and_the_sound_agent_is_not(wedgehog: Any, tmp_path: Path, story: str):
    """A page may begin anew in sight of its user, may let them have one answer at a time, and may end a turn that they
    leave if it says so. At level `strict` it must show what was said, also to a user who comes back.
    """
    for bug in STORIES[story]:
        words = ["{python}", str(AGENT), "{port}", "{llm_url}", "{session_dir}", bug]
        page = {"start": words, "answer": "p.agent", "busy": "#busy", "stop": "#stop", "new_chat": "#new"}
        page |= {"chats": "nav li"} if bug == "lists" else {}
        spec = {
            "name": bug,
            "wire": "anthropic",
            "page": page,
            "limits": {"turn_s": 25 if "user" in story else 12},
            "start_s": 12,
            "recover_s": 0,
        }
        (tmp_path / f"{bug}.yaml").write_text(yaml.safe_dump(spec))
    agents = [word for bug in STORIES[story] for word in ("--agent", f"{bug}.yaml")]
    done = wedgehog("run", story, *agents, "--network", "embedded", JOBS)
    assert done.returncode == 1, done.stdout + done.stderr
    told = [json.loads(it.read_text()) for it in (tmp_path / "runs" / "latest").glob(f"{story}/*/verdicts.json")]
    assert {it["agent"]: set(it["violated"]) for it in told} == STORIES[story]
    assert {it["agent"] for it in told if "page_kept" in it["strict"]} == FORGETFUL.get(story, set())
    _shows_pictures(tmp_path / "runs" / "latest", told)


@pytest.mark.parametrize(("story", "buggy"), [("abort-in-mid-reply", "trips"), ("page-is-loaded-again", "beside")])
def test_an_error_that_nothing_has_caused_is_red_at_level_strict(wedgehog: Any, tmp_path: Path, story: str, buggy: str):
    """Beside a whole answer, or after a stop: the page has tripped over itself."""
    for bug in ("sound", buggy):
        words = ["{python}", str(AGENT), "{port}", "{llm_url}", "{session_dir}", bug]
        page = {"start": words, "answer": "p.agent", "busy": "#busy", "stop": "#stop", "new_chat": "#new"}
        spec = {"name": bug, "wire": "anthropic", "page": page, "start_s": 12, "recover_s": 0, "level": "strict"}
        (tmp_path / f"{bug}.yaml").write_text(yaml.safe_dump(spec))
    done = wedgehog("run", story, "--agent", "sound.yaml", "--agent", f"{buggy}.yaml", "--network", "embedded", JOBS)
    assert done.returncode == 1, done.stdout + done.stderr
    told = [json.loads(it.read_text()) for it in (tmp_path / "runs" / "latest").glob(f"{story}/*/verdicts.json")]
    assert {it["agent"]: it["violated"] for it in told} == {"sound": [], buggy: ["no_false_error"]}
