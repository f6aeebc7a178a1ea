"""What one process of the search plays and keeps in memory."""

import json
from pathlib import Path

import pytest
import yaml

from wedgehog.harness.campaign.selection import named_agent
from wedgehog.harness.record.events.base import Event, from_json
from wedgehog.harness.record.store import RunStore
from wedgehog.harness.run.control import ControlFacts
from wedgehog.harness.search.in_one_process import InOneProcess, UnwrittenRun
from wedgehog.harness.sim.world import SimWorld

AGENT = '''\
"""It asks up to three times."""
import aiohttp


async def ask(message, *, session_dir, llm_url, key):
    body = {"model": "m", "messages": [{"role": "user", "content": message}]}
    async with aiohttp.ClientSession(headers={"authorization": f"Bearer {key}"}) as client:
        for attempt in range(3):
            async with client.post(f"{llm_url}/v1/chat/completions", json=body) as reply:
                if reply.status == 200:
                    return (await reply.json())["choices"][0]["message"]["content"]
    return "Error: no answer"
'''
REFUSED_ONCE = {
    "name": "drawn",
    "why": "?",
    "turns": [{"user": "Hi", "model": [{"text": "Yes. {nonce}"}]}],
    "faults": [{"do": {"status": {"code": 503}}}],
}


def test_events_in_memory_equal_those_that_a_run_folder_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """So the verdict in memory is the one that a fresh process reads from its file."""
    (tmp_path / "unwritten.py").write_text(AGENT)
    spec = {"name": "mine", "wire": "openai-chat", "callable": "unwritten:ask"}
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(spec))
    told: list[Event] = []
    stores: list[UnwrittenRun] = []
    write = UnwrittenRun.write

    def noted(store: UnwrittenRun, event: Event) -> None:
        told.append(event)
        stores.append(store)
        write(store, event)

    monkeypatch.setattr(UnwrittenRun, "write", noted)
    with SimWorld() as world:
        agents = [(named_agent(str(tmp_path / "mine.yaml")), ControlFacts(True))]
        played = InOneProcess(world, agents, lambda document: None).play(REFUSED_ONCE)
    assert played is not None and [it.verdict for it in played.judgements] == ["pass"], played
    assert len(told) > 15 and stores[-1].events == told
    assert told == [from_json(json.loads(json.dumps(event.as_json()))) for event in told]


def test_bodies_have_the_names_that_a_run_folder_gives_them(tmp_path: Path):
    """Two bodies that differ only in the order of their keys are one."""
    bodies = [b'{"a": 1, "b": 2}', b'{"b": 2, "a": 1}', b'{"a": 1, "b": 3}', b"no JSON"]
    written, unwritten = RunStore(tmp_path / "one", tmp_path / "bodies"), UnwrittenRun(tmp_path / "two")
    names = [unwritten.keep_body(body) for body in bodies]
    assert names == [written.keep_body(body) for body in bodies]
    assert names[0] == names[1] and len(set(names)) == 3
    written.close()
    assert not any((tmp_path / "two").iterdir())
