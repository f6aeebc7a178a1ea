"""Its user is away: an agent that asks its model on and on is red, and one that looks a few times is not."""

from pathlib import Path

import pytest
import yaml

from tests.live.together import AT_ONCE, Found, entry, play
from wedgehog.harness.campaign.options import Options

AGENT = Path(__file__).with_name("restless.py")
STORY = "user-is-away-after-a-rate-limit"
KINDS = {"sound": set(), "backs-off": set(), "restless": {"paid_call_bound", "retry_discipline"}}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Found:
    """Each kind of agent in the scenario."""
    folder = tmp_path_factory.mktemp("away")
    pairs = []
    for kind in KINDS:
        start = ["{python}", str(AGENT), kind, "{llm_url}", "{port}"]
        http = {"start": start, "url": "/message", "body": {"text": "{message}"}, "answer": "json:answer"}
        spec = {"name": kind, "wire": "anthropic", "http": http}
        (folder / f"{kind}.yaml").write_text(yaml.safe_dump(spec))
        pairs.append(entry(STORY, folder / f"{kind}.yaml"))
    return play(pairs, Options(folder / "runs", network="embedded", jobs=AT_ONCE))


@pytest.mark.parametrize(("kind", "red"), KINDS.items())
def test_only_an_agent_that_asks_without_an_end_is_red(found: Found, kind: str, red: set[str]):
    """Its user sees an answer, and then nothing."""
    judged = found[STORY, kind]
    assert set(judged.violated) == red and judged.verdict == ("fail" if red else "pass"), judged.findings
