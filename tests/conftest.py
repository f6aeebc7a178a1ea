"""The order of the tests: those that play whole campaigns take longest, so they begin first."""

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Where tests run side by side, nobody is left waiting for one that began last."""
    items.sort(key=lambda item: "/live/" not in item.path.as_posix())
