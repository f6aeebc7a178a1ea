"""The worker of the simulated world imports an agent's SDK once for all of its forks."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from wedgehog.harness.agents.spec import AgentSpec, load_spec
from wedgehog.harness.run.simulated.shared_packages import SharedPackages


def agent(folder: Path, files: Mapping[str, str], target: str = "mine:answer", **more: object) -> AgentSpec:
    """An agent with these files."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    spec = folder / "mine.yaml"
    spec.write_text(json.dumps({"name": "mine", "wire": "openai-chat", "callable": target, **more}))
    return load_spec(spec)


@pytest.mark.parametrize(
    ("files", "target"),
    [
        ({"mine.py": "import openai, json"}, "mine:answer"),
        ({"mine.py": "def answer():\n    from openai import AsyncOpenAI"}, "mine.py:answer"),
        ({"mine.py": "import client", "client.py": "import openai.types"}, "{here}/mine.py:answer"),
        (
            {"app/main.py": "from .model import ask", "app/__init__.py": "", "app/model.py": "import openai"},
            "app.main:ask",
        ),
    ],
)
def test_an_sdk_is_found_in_the_agents_own_files(tmp_path: Path, files: dict[str, str], target: str):
    """In a function too, and in a file that another one imports; nothing is executed."""
    assert SharedPackages.of([agent(tmp_path, files, target)]).names == ("openai",)


@pytest.mark.parametrize(
    "files",
    [
        {"mine.py": "import openai", "openai.py": ""},
        {"mine.py": "import openai", "openai/__init__.py": ""},
        {"mine.py": "from . import openai", "openai.py": ""},
        {"mine.py": "import sqlite3, mine"},
        {"mine.py": "import openai ="},
        {},
    ],
)
def test_nothing_is_shared_where_the_agent_has_its_own_module_or_none(tmp_path: Path, files: dict[str, str]):
    """A file of this name beside it comes first for the agent."""
    assert SharedPackages.of([agent(tmp_path, files)]).names == ()


def test_agents_with_other_variables_share_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """An SDK reads its level of logging when it is imported. Variables that are others in each run do not count."""
    monkeypatch.setenv("OPENAI_LOG", "info")
    code = {"mine.py": "import openai"}
    plain = agent(tmp_path, code)
    loud = agent(tmp_path, code, env={"OPENAI_LOG": "debug", "KEY": "{key}"})
    assert SharedPackages.of([plain, plain]) == SharedPackages(("openai",))
    assert SharedPackages.of([loud]).env == {"OPENAI_LOG": "debug"}
    assert SharedPackages.of([plain, loud]) == SharedPackages()
    assert SharedPackages.of([agent(tmp_path, code, inherit_env=["OPENAI_LOG"])]).env == {"OPENAI_LOG": "info"}


def test_a_package_is_imported_in_virtual_time_with_the_agents_variables_alone(tmp_path: Path):
    """What it prints, and what it raises, is no matter of the worker."""
    (tmp_path / "sdk.py").write_text(
        "import asyncio, os, time\nprint('hello')\n"
        "seen = (dict(os.environ), time.time() == time.time(), asyncio.get_running_loop().time())\n"
    )
    program = (
        "import sys\nfrom wedgehog.harness.run.simulated.shared_packages import SharedPackages\n"
        "from wedgehog.harness.sim.world import SimWorld\n"
        "with SimWorld() as world:\n    SharedPackages(('sdk', 'no_such_sdk'), {'A': 'b'}).load(world)\n"
        "print(sys.modules['sdk'].seen[:2])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "({'A': 'b'}, True)\n"
