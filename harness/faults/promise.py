"""Whether a wire fault ends a connection as it says: a wrong `ends` would make the history count other bytes."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wedgehog.harness.faults.base import Ending, WireFault


class _StopRecorder:
    """A pipe that only records where a fault stops it."""

    def __init__(self) -> None:
        self.found: list[tuple[int, str]] = []

    def stop(self, at: int, how: "Ending") -> None:
        self.found.append((at, how))

    def pace(self, at: int, every_s: float, size: int, *, in_proportion: bool = False) -> None:
        pass

    def delay(self, s: float) -> None:
        pass


_PROBED = 1000
"""The byte at which the promise of a fault is checked."""


def broken_promise(fault: "WireFault") -> str:
    """What does not fit `ends`: the history would count other bytes than the agent gets. Empty if all fits."""
    stops, how = _StopRecorder(), fault.ends
    fault.on_pipe(stops, _PROBED)
    called = " and ".join(f"pipe.stop{stop}" for stop in stops.found) or "no pipe.stop"
    if how is None:
        return f"has no `ends`: on_pipe must not call pipe.stop, it called {called}" if stops.found else ""
    if stops.found != [(_PROBED, how)]:
        return f"ends with {how}: on_pipe(pipe, {_PROBED}) must call pipe.stop({_PROBED}, {how!r}), it called {called}"
    limits = [toxic.attributes.get("bytes") for toxic in fault.toxics(_PROBED) if toxic.kind == "limit_data"]
    if limits != [_PROBED]:
        found = ", ".join(map(str, limits)) or "nothing"
        return f"ends with {how}: toxics({_PROBED}) must limit the data to {_PROBED} bytes, it limits them to {found}"
    return ""
