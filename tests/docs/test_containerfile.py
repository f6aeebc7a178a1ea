"""The image file agrees with the project: its sources, its extras, its Python, and the Toxiproxy that the code pins."""

import ast
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest

from wedgehog.harness.network.toxiproxy import server

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docs" / "ci" / "Containerfile"
Line = tuple[str, str]


@pytest.fixture
def stages() -> list[list[Line]]:
    """The instructions of each stage, continued lines joined."""
    text = re.sub(r"^#.*\n", "", FILE.read_text(), flags=re.MULTILINE).replace("\\\n", "")
    found: list[list[Line]] = [[]]
    for line in filter(None, map(str.strip, text.splitlines())):
        word, _, rest = line.partition(" ")
        found += [[]] if word == "FROM" else []
        found[-1].append((word, rest.strip()))
    return found


@pytest.fixture
def project() -> Any:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def of(stage: list[Line], word: str) -> list[str]:
    return [rest for name, rest in stage if name == word]


def test_all_that_is_installed_is_copied_before(stages: Any, project: Any):
    """Each source folder of the package, what its metadata names, and the lock; and the extras exist."""
    copied = {word for rest in of(stages[1], "COPY") for word in shlex.split(rest)[:-1]}
    folders = {name.split(".")[1] for name in project["tool"]["setuptools"]["packages"] if "." in name}
    assert folders | {"pyproject.toml", "requirements.lock", "README.md", "LICENSE"} == copied
    assert all((ROOT / name).exists() for name in copied)
    (installs,) = [rest for rest in of(stages[1], "RUN") if rest.startswith("pip install")]
    extras = re.search(r'"\.\[([a-z,]+)\]"', installs)
    assert extras and "--constraint requirements.lock" in installs
    assert set(extras[1].split(",")) <= set(project["project"]["optional-dependencies"])


def test_each_extra_that_docs_and_messages_name_exists(project: Any):
    """A reader copies `pip install 'wedgehog[dask]'` from there."""
    files = [ROOT / "README.md", ROOT / "action.yml", *(ROOT / "docs").rglob("*.md"), *(ROOT / "docs" / "ci").iterdir()]
    files += [path for folder in ("harness", "reports", "fake_llm") for path in (ROOT / folder).rglob("*.py")]
    texts = [path.read_text("utf-8") for path in files if path.is_file()]
    named = {name for text in texts for some in re.findall(r"wedgehog\[([a-z, ]+)\]", text) for name in some.split(",")}
    assert "dask" in named
    assert {name.strip() for name in named} <= set(project["project"]["optional-dependencies"])


def test_both_stages_have_one_python_that_the_project_supports(stages: Any, project: Any):
    (python,) = of(stages[0], "ARG")
    assert [rest.split()[0] for stage in stages[1:] for rest in of(stage, "FROM")] == [
        "docker.io/library/python:${PYTHON}-slim"
    ] * 2
    least = project["project"]["requires-python"].removeprefix(">=")
    version = tuple(map(int, python.removeprefix("PYTHON=").split(".")))
    assert version >= tuple(map(int, least.split(".")))


def test_toxiproxy_comes_by_the_code_that_checks_its_sum(stages: Any):
    """No version and no checksum stand a second time in the file; the names that it imports exist."""
    (fetches,) = [rest for rest in of(stages[1], "RUN") if "toxiproxy" in rest]
    code = shlex.split(fetches)[-1]
    imported = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.ImportFrom)]
    assert [(node.module, [it.name for it in node.names]) for node in imported] == [
        (server.__name__, ["fetch", "locate"])
    ]
    assert callable(server.fetch) and callable(server.locate) and server.VERSION not in FILE.read_text()
    assert not any(digest in FILE.read_text() for digest in server.SHA256.values())


def test_the_image_runs_wedgehog_as_a_user_without_rights_and_downloads_nothing(stages: Any):
    last = stages[-1]
    (user,), (entry,) = of(last, "USER"), of(last, "ENTRYPOINT")
    assert user not in ("root", "0") and any(f" {user}" in rest for rest in of(last, "RUN"))
    assert entry == '["wedgehog"]' and "WEDGEHOG_OFFLINE=1" in of(last, "ENV")[0]
    assert last.index(("USER", user)) > max(n for n, (word, _) in enumerate(last) if word in ("RUN", "COPY"))
