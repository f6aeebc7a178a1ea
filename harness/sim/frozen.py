"""Lets `time` and `datetime` follow the virtual clock, with freezegun.

freezegun replaces the functions of `time` in every module, which takes up to half a second. So it is started once for
a process; each jump of the clock then only moves it.

```python
with frozen_time() as move:
    simulate(main, loop=SimLoop(on_jump=move))
```
"""

import contextlib
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any
from unittest import mock

from freezegun import api, freeze_time

from wedgehog.harness.sim.clock import EPOCH
from wedgehog.harness.sim.loop import START_S

IGNORED = ["hypothesis"]
"""Modules that see the real time: Hypothesis measures how long its examples take."""
_current: list[Callable[[float], None]] = []


@contextlib.contextmanager
def frozen_time() -> Iterator[Callable[[float], None]]:
    """Freeze `time` and `datetime` at the start of the virtual clock; yields what moves them to a virtual time.

    Inside of another `frozen_time` it begins at the start again and costs nothing.
    """
    if _current:
        _current[-1](START_S)
        yield _current[-1]
        return
    _teach_pydantic()
    freezer = freeze_time(_at(START_S), ignore=IGNORED)
    factory = freezer.start()

    monotonic = START_S

    def move(now: float) -> None:
        nonlocal monotonic
        monotonic, factory.time_to_freeze = now, _at(now)

    # freezegun derives it from the calendar; on a real event loop it is the loop's own time.
    exact = mock.patch.multiple(
        api, _get_fake_monotonic=lambda: monotonic, _get_fake_monotonic_ns=lambda: round(monotonic * 1e9)
    )
    _current.append(move)
    try:
        with exact:
            yield move
    finally:
        _current.remove(move)
        freezer.stop()


def _at(now: float) -> datetime:
    """freezegun's own time is naive, and UTC."""
    return EPOCH.replace(tzinfo=None) + timedelta(seconds=now - START_S)


def _teach_pydantic() -> None:
    """Pydantic models that are built while time is frozen treat freezegun's classes as the real ones."""

    def schema_of(real: type) -> classmethod[Any, Any, Any]:
        return classmethod(lambda cls, source, handler: handler.generate_schema(real))

    for fake, real in ((api.FakeDatetime, api.real_datetime), (api.FakeDate, api.real_date)):
        if "__get_pydantic_core_schema__" not in vars(fake):
            setattr(fake, "__get_pydantic_core_schema__", schema_of(real))  # noqa: B010  freezegun has no such name
