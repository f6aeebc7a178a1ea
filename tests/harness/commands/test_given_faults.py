"""An async test that is an agent: faults are drawn for it, and a failure shows the smallest scenario."""

import asyncio
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

import wedgehog
from wedgehog.harness.scenario.scenario_file import load_scenario


async def _answer(message: str, llm_url: str, key: str) -> str:
    body = {"model": "m", "messages": [{"role": "user", "content": message}]}
    async with asyncio.timeout(20), httpx.AsyncClient(headers={"authorization": f"Bearer {key}"}) as client:
        reply = await client.post(f"{llm_url}/v1/chat/completions", json=body)
    reply.raise_for_status()
    choice = reply.json()["choices"][0]
    if choice["finish_reason"] != "stop" or not choice["message"]["content"]:
        raise RuntimeError(f"no whole answer: {choice}")
    return str(choice["message"]["content"])


@wedgehog.given_faults(wire="openai-chat", scenarios=25)
async def says_what_went_wrong(message: str, *, session_dir: str, llm_url: str, key: str) -> str:
    """It answers or raises."""
    return await _answer(message, llm_url, key)


@wedgehog.given_faults(wire="openai-chat", scenarios=25)
async def apologizes(message: str, *, session_dir: str, llm_url: str, key: str) -> str:
    """The planted bug: no word of the cause."""
    try:
        return await _answer(message, llm_url, key)
    except (httpx.HTTPError, TimeoutError, RuntimeError):
        return "Sorry, I have no answer today."


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_an_agent_that_names_its_errors_passes():
    """It is called without arguments, as pytest calls a test."""
    says_what_went_wrong()


def test_a_bug_fails_the_test_with_its_smallest_scenario(tmp_path: Path):
    """Script, fault, timeline and the replay command; and an ordinary scenario file to keep."""
    with pytest.raises(pytest.fail.Exception) as failed:
        apologizes()
    said = str(failed.value)
    assert "Sorry, I have no answer today" in said and "Traceback" not in said
    assert all(part in said for part in ("turns:", "faults:", "timeline:", "again: wedgehog replay"))
    found = [load_scenario(path).scenario for path in tmp_path.glob("fuzz/apologizes/found/*.yaml")]
    assert found and all(len(scenario.faults) == 1 for scenario in found)
    assert (tmp_path / "fuzz/apologizes/agent.yaml").is_file()


AGENT = """
import httpx

async def answer(message, llm_url, key):
    body = {"model": "m", "messages": [{"role": "user", "content": message}]}
    async with httpx.AsyncClient(headers={"authorization": f"Bearer {key}"}) as client:
        reply = await client.post(f"{llm_url}/v1/chat/completions", json=body)
    reply.raise_for_status()
    return reply.json()["choices"][0]["message"]["content"]
"""
TEST = """
import wedgehog
from MODULE import answer

@wedgehog.given_faults(wire="openai-chat", scenarios=1)
async def test_my_agent(message, *, session_dir, llm_url, key):
    return await answer(message, llm_url, key)
"""


@pytest.mark.parametrize(("module", "said"), [("my_agent", "1 passed"), ("lost.my_agent", "there is no module 'lost'")])
def test_the_agent_may_be_a_module_beside_the_test(tmp_path: Path, module: str, said: str):
    """As `python test.py` finds it. One that is found by this process alone is one failure without a traceback."""
    (tmp_path / "my_agent.py").write_text(AGENT)
    (tmp_path / "test_it.py").write_text(TEST.replace("MODULE", module))
    (tmp_path / "conftest.py").write_text("import sys, my_agent\nsys.modules['lost.my_agent'] = my_agent\n")
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py"]
    ran = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False)
    assert said in ran.stdout, ran.stdout
    assert "Traceback" not in ran.stdout and "given_faults.py" not in ran.stdout


def test_a_function_that_no_other_process_can_import_is_refused():
    """A worker process imports the agent by its file and name."""

    async def local(message: str) -> str:
        return message

    with pytest.raises(ValueError, match="given_faults: local must stand at the top of its module"):
        wedgehog.given_faults(wire="openai-chat")(local)


def test_the_package_has_a_version_and_imports_nothing_before_it_is_used():
    """A mistyped name is an AttributeError, as in every module."""
    assert wedgehog.__version__ and set(wedgehog.__all__) >= {"Provider", "given_faults"}
    assert set(dir(wedgehog)) >= set(wedgehog.__all__)
    with pytest.raises(AttributeError, match="no attribute 'given_fault'"):
        getattr(wedgehog, "given_fault")  # noqa: B009  the test of a name that mypy knows to be wrong
