"""A wire fault whose effect does not fit its `ends` is refused where it is made, with one clear sentence."""

import pytest

from wedgehog.harness.faults.base import FaultPipe, Toxic, WireFault, fault
from wedgehog.harness.faults.parameters import FaultError


class Ending(WireFault):
    """A fault of a plugin that says that it ends connections with FIN."""

    ends = "fin"

    def toxics(self, at: int) -> tuple[Toxic, ...]:
        return Toxic("slow_close", {"delay": 0}), Toxic("limit_data", {"bytes": at})


def made(cls: type[WireFault], monkeypatch: pytest.MonkeyPatch) -> WireFault:
    """An instance of a plugin's fault, whose name is forgotten after the test."""
    monkeypatch.setattr("wedgehog.harness.faults.base._registry", {})
    return fault("early", family="wire")(cls)()


def refused(cls: type[WireFault], monkeypatch: pytest.MonkeyPatch) -> str:
    """The sentence with which it is refused."""
    with pytest.raises(FaultError) as wrong:
        made(cls, monkeypatch)
    return str(wrong.value)


def test_a_fault_that_ends_must_stop_the_pipe_at_its_byte(monkeypatch: pytest.MonkeyPatch):
    """Else the relay and the history would count different bytes."""

    class Shifted(Ending):
        def on_pipe(self, pipe: FaultPipe, at: int) -> None:
            pipe.stop(at + 7, "fin")

    assert refused(Shifted, monkeypatch) == (
        "early ends with fin: on_pipe(pipe, 1000) must call pipe.stop(1000, 'fin'), it called pipe.stop(1007, 'fin')"
    )


def test_a_fault_that_ends_must_stop_the_pipe_at_all(monkeypatch: pytest.MonkeyPatch):
    """A pace alone loses no byte."""

    class Slow(Ending):
        def on_pipe(self, pipe: FaultPipe, at: int) -> None:
            pipe.pace(at, 1.0, 1)

    assert refused(Slow, monkeypatch).endswith("must call pipe.stop(1000, 'fin'), it called no pipe.stop")


def test_a_fault_that_slows_must_not_stop_the_pipe(monkeypatch: pytest.MonkeyPatch):
    """Without `ends` every byte is expected to arrive."""

    class Losing(Ending):
        ends = None

        def on_pipe(self, pipe: FaultPipe, at: int) -> None:
            pipe.stop(at, "rst")

    assert refused(Losing, monkeypatch) == (
        "early has no `ends`: on_pipe must not call pipe.stop, it called pipe.stop(1000, 'rst')"
    )


def test_toxiproxy_must_stop_at_the_same_byte(monkeypatch: pytest.MonkeyPatch):
    """The two networks would let different bytes pass."""

    class Other(Ending):
        def on_pipe(self, pipe: FaultPipe, at: int) -> None:
            pipe.stop(at, "fin")

        def toxics(self, at: int) -> tuple[Toxic, ...]:
            return (Toxic("limit_data", {"bytes": at + 1}),)

    assert refused(Other, monkeypatch) == (
        "early ends with fin: toxics(1000) must limit the data to 1000 bytes, it limits them to 1001"
    )


def test_a_fault_that_keeps_the_contract_is_made(monkeypatch: pytest.MonkeyPatch):
    """The check is no obstacle."""

    class Right(Ending):
        def on_pipe(self, pipe: FaultPipe, at: int) -> None:
            pipe.stop(at, "fin")

    assert made(Right, monkeypatch).ends == "fin"
