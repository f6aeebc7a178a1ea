"""Lets `time` and `datetime` follow the virtual clock, with freezegun.

freezegun replaces the functions of `time` in every module, which takes up to half a second. So it is started once for
a process; each jump of the clock then only moves it.

```python
with frozen_time() as move:
    simulate(main, loop=SimLoop(on_jump=move))
```
"""

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any
from unittest import mock

from freezegun import api, freeze_time

from wedgehog.harness.sim.clock import EPOCH
from wedgehog.harness.sim.virtual_time import START_S

IGNORED = ["hypothesis"]
"""Modules that see the real time: Hypothesis measures how long its examples take."""
_NAIVE = EPOCH.replace(tzinfo=None)
"""freezegun's own time is naive, and UTC."""
_current: "list[_Moment]" = []


class _Moment:
    """The virtual time; freezegun calls it for the date and time, which few jumps need."""

    def __init__(self) -> None:
        self.now = START_S

    def move(self, now: float) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return _NAIVE + timedelta(seconds=self.now - START_S)


@contextlib.contextmanager
def frozen_time() -> Iterator[Callable[[float], None]]:
    """Freeze `time` and `datetime` at the start of the virtual clock; yields what moves them to a virtual time.

    Inside of another `frozen_time` it begins at the start again and costs nothing.
    """
    if _current:
        _current[-1].move(START_S)
        yield _current[-1].move
        return
    _teach_pydantic()
    moment = _Moment()
    freezer = freeze_time(moment(), ignore=IGNORED)
    freezer.start()
    api.freeze_factories[-1] = moment  # type: ignore[call-overload]
    # freezegun derives these from the calendar; on a real event loop they are the loop's own time.
    exact = mock.patch.multiple(
        api, _get_fake_monotonic=lambda: moment.now, _get_fake_monotonic_ns=lambda: round(moment.now * 1e9)
    )
    _current.append(moment)
    finder = _WithRealDates()
    sys.meta_path.insert(0, finder)
    try:
        with exact:
            yield moment.move
    finally:
        sys.meta_path.remove(finder)
        _current.remove(moment)
        freezer.stop()


class _WithRealDates(MetaPathFinder):
    """Imports `pydantic.v1.types` as if time were not frozen; LangChain imports it.

    It derives a class from `date` with a metaclass of its own, which freezegun's `date` does not allow.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(fullname, path, target) if fullname == "pydantic.v1.types" else None
        if spec is None or spec.loader is None:
            return None
        load = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            with mock.patch("datetime.date", api.real_date):
                load(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def _teach_pydantic() -> None:
    """Pydantic models that are built while time is frozen treat freezegun's classes as the real ones."""

    def schema_of(real: type) -> "classmethod[Any, Any, Any]":
        return classmethod(lambda cls, source, handler: handler.generate_schema(real))

    for fake, real in ((api.FakeDatetime, api.real_datetime), (api.FakeDate, api.real_date)):
        if "__get_pydantic_core_schema__" not in vars(fake):
            setattr(fake, "__get_pydantic_core_schema__", schema_of(real))  # noqa: B010  freezegun has no such name


def real_s() -> float:
    """Real seconds on a monotonic clock, frozen or not."""
    return float(api.real_monotonic())
