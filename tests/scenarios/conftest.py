"""Starts the specimens that use aiohttp, whose import takes most of the time of such a test."""

from collections.abc import Iterator

import pytest

from tests.conftest import warm

IMPORTED = ("aiohttp", "aiohttp.web", "argparse", "sqlite3", "subprocess")
"""What these specimens import."""


@pytest.fixture(scope="session")
def specimen_python(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A `python` whose processes are forked from one that has imported it."""
    with warm(tmp_path_factory.mktemp("warm-specimens"), IMPORTED) as python:
        yield python


@pytest.fixture(autouse=True)
def _python(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the `PYTHON` of a module of tests that has one."""
    if hasattr(request.module, "PYTHON"):
        monkeypatch.setattr(request.module, "PYTHON", request.getfixturevalue("specimen_python"))
