"""Finds out what an LLM agent does when its model, its tools or its network misbehave.

These names are the interface for your own tests. Each is imported when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wedgehog.harness.commands.given_faults import given_faults
    from wedgehog.harness.commands.serve import Provider
    from wedgehog.harness.sim.world import SimWorld
    from wedgehog.reports.data.frames import frames

    __version__: str

__all__ = ["Provider", "SimWorld", "__version__", "frames", "given_faults"]

_PLACES = {
    "Provider": "wedgehog.harness.commands.serve",
    "SimWorld": "wedgehog.harness.sim.world",
    "frames": "wedgehog.reports.data.frames",
    "given_faults": "wedgehog.harness.commands.given_faults",
}


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("wedgehog")
    if name not in _PLACES:
        raise AttributeError(f"module 'wedgehog' has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)
