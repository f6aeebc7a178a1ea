"""An agent with a page: a browser shows what its user sees, and the verdicts are about that."""

from pathlib import Path

import pytest
import yaml

pytest.importorskip("playwright")

from tests.browsers import has_browser
from tests.live.together import AT_ONCE, Found, entry, play
from wedgehog.harness.campaign.options import Options
from wedgehog.harness.record.judgement import read_judgement
from wedgehog.reports import write_folder

AGENT = Path(__file__).with_name("paged.py")


@pytest.fixture(scope="module", autouse=True)
def _needs_a_browser() -> None:
    if not has_browser():
        pytest.skip("no browser is installed")


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


TRIPPING = {"abort-in-mid-reply": "trips", "page-is-loaded-again": "beside"}
"""Agents in which `no_false_error` is red, at level `strict`."""
PAIRS = {
    *((story, bug) for story, bugs in STORIES.items() for bug in bugs),
    *((story, bug) for story, tripping in TRIPPING.items() for bug in ("sound", tripping)),
}
PATIENT = "-patient"
"""The end of the name of an agent that may take longer: in the stories of its user."""


def _name(story: str, bug: str) -> str:
    return bug + PATIENT * ("user" in story)


@pytest.fixture(scope="module")
def campaigns(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the campaign is, and another one with what a busy machine left undecided."""
    return tmp_path_factory.mktemp("campaigns")


@pytest.fixture(scope="module")
def found(campaigns: Path, tmp_path_factory: pytest.TempPathFactory) -> Found:
    """All pairs, played once by one browser: a control run, and a start of the browser, take seconds of a processor."""
    specs = tmp_path_factory.mktemp("specs")
    entries = []
    for story, bug in sorted(PAIRS):
        name = _name(story, bug)
        words = ["{python}", str(AGENT), "{port}", "{llm_url}", "{session_dir}", bug]
        page = {"start": words, "answer": "p.agent", "busy": "#busy", "stop": "#stop", "new_chat": "#new"}
        page |= {"chats": "nav li"} if bug == "lists" else {}
        limits = {"turn_s": 25 if name.endswith(PATIENT) else 12}
        spec = {"name": name, "wire": "anthropic", "page": page, "limits": limits, "start_s": 12, "recover_s": 0}
        (specs / f"{name}.yaml").write_text(yaml.safe_dump(spec))
        entries.append(entry(story, specs / f"{name}.yaml"))
    return play(entries, Options(campaigns, network="embedded", jobs=AT_ONCE))


@pytest.mark.parametrize("story", STORIES)
def test_a_planted_bug_is_red_and_the_sound_agent_is_not(found: Found, story: str):
    """A page may begin anew in sight of its user, may let them have one answer at a time, and may end a turn that they
    leave if it says so. At level `strict` it must show what was said, also to a user who comes back.
    """
    told = {bug: found[story, _name(story, bug)] for bug in STORIES[story]}
    assert {bug: set(it.violated) for bug, it in told.items()} == STORIES[story]
    assert {bug: it.verdict for bug, it in told.items()} == {
        bug: "fail" if red else "pass" for bug, red in STORIES[story].items()
    }
    assert {bug for bug, it in told.items() if "page_kept" in it.strict} == FORGETFUL.get(story, set())


@pytest.mark.parametrize("story", TRIPPING)
def test_an_error_that_nothing_has_caused_is_red_at_level_strict(found: Found, story: str):
    """Beside a whole answer, or after a stop: the page has tripped over itself."""
    told = {bug: found[story, bug] for bug in ("sound", TRIPPING[story])}
    assert {bug: (it.verdict, it.strict) for bug, it in told.items()} == {
        "sound": ("pass", ()),
        TRIPPING[story]: ("pass", ("no_false_error",)),
    }


def test_each_turn_has_a_picture_and_the_report_has_those_of_runs_that_did_not_pass(found: Found, campaigns: Path):
    """They are in the run's folder."""
    for latest in campaigns.glob("*/latest"):
        failed = 0
        for folder in (it.parent for it in latest.glob("*/*/verdicts.json")):
            pictures = len(list(folder.glob("page-*.jpg")))
            assert pictures, folder
            failed += pictures * (read_judgement(folder).verdict != "pass")
        write_folder(latest.resolve())
        assert (latest / "report.html").read_text().count('<img src="data:image/jpeg;base64,') == failed
