"""An injector between a link that takes notes and calls that a test makes up."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.harness.inject.rig import Rig


@pytest.fixture
def rig(manual_clock: Any, fake_link: Callable[..., Any]) -> Callable[..., Rig]:
    """Makes a rig for some lines of a fault plan, written as in a scenario."""
    return lambda *faults: Rig(manual_clock, fake_link(), faults)
