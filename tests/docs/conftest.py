"""What tests of the documentation share."""

import importlib.util
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from wedgehog.harness.faults import base as fault_registry
from wedgehog.harness.invariants import registry as invariant_registry

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def docs() -> Path:
    """The documentation's folder."""
    return DOCS


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], ModuleType]]:
    """Imports one of docs/examples; what it registers is forgotten after the test."""
    monkeypatch.setattr(fault_registry, "_registry", dict(fault_registry._registry))
    monkeypatch.setattr(invariant_registry, "_REGISTRY", dict(invariant_registry._REGISTRY))

    def load(name: str) -> ModuleType:
        module_name = f"wedgehog_docs_example_{name}"
        spec = importlib.util.spec_from_file_location(module_name, DOCS / "examples" / f"{name}.py")
        assert spec and spec.loader
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, module_name, module)
        spec.loader.exec_module(module)
        return module

    yield load
