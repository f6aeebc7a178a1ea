"""A worker collects the tests of a file when the file's turn comes.

Otherwise each of the workers would import and collect all files, before the first test runs: 25 seconds of processor
time for each in a fresh checkout, where the files are not compiled.

pytest-xdist sees two items in each file. The first collects the tests of the file and runs them. The second is
its end: a worker begins with an item when it has the next one, and without a second item it would have to take a file
that another worker could run.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol


class Part(pytest.Item):
    """An item of a whole file."""

    def runtest(self) -> None:
        """Nothing is left to do."""


class WholeFile(pytest.File):
    """A file that is not imported yet."""

    def collect(self) -> Iterator[Part]:
        """Its two items."""
        return (Part.from_parent(self, name=name) for name in ("tests", "end"))

    def tests(self) -> list[pytest.Item]:
        """Import the file, and collect its tests."""
        found = list(self.session.genitems(pytest.Module.from_parent(self.parent, path=self.path)))
        self.config.hook.pytest_collection_modifyitems(session=self.session, config=self.config, items=found)
        return found


class WholeFiles:
    """A plugin of a worker."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_pycollect_makemodule(self, module_path: Path, parent: pytest.Collector) -> WholeFile:
        """Import no file at the start."""
        return WholeFile.from_parent(parent, path=module_path)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        """In place of the first item, run the tests of its file. The second one tears down what they shared."""
        if not isinstance(item, Part):
            return None
        if item.name == "tests":
            assert isinstance(item.parent, WholeFile)
            _run(item, item.parent.tests(), nextitem)
            return True
        for report in runtestprotocol(item, log=False, nextitem=nextitem):
            if report.failed:
                item.ihook.pytest_runtest_logreport(report=report)
        return True


def _run(item: pytest.Item, tests: list[pytest.Item], after: pytest.Item | None) -> None:
    """Run the tests, each in the place of the item: the worker's reports are those of the item at that place."""
    session = item.session
    place = session.items.index(item)
    for test, following in zip(tests, [*tests[1:], after], strict=False):
        session.items[place] = test
        item.config.hook.pytest_runtest_protocol(item=test, nextitem=following)
        if session.shouldfail or session.shouldstop:
            break
    session.items[place] = item


def collect_late(config: pytest.Config) -> None:
    """Have a worker that gets whole files collect late, unless only some of their tests were asked for."""
    if not any("::" in arg for arg in config.args) and not any(map(config.getoption, ("-k", "-m", "--lf", "--ff"))):
        config.pluginmanager.register(WholeFiles())
