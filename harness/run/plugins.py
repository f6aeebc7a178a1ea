"""A user's own faults and invariants, from `--plugin FILE` or a module: code that runs, so no data names it."""

import importlib
import importlib.util
import sys
import traceback
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType

from wedgehog.harness.faults.base import registered
from wedgehog.harness.invariants import known
from wedgehog.harness.sandbox.started import sha256, what_imports


class PluginError(Exception):
    """A plugin can't be used; one line for the user."""


def load_plugins(names: Sequence[str]) -> None:
    """Import each plugin (`file.py`, or a module from the working folder). PluginError if one registers nothing."""
    for name in dict.fromkeys(names):
        before = _names()
        module = _import(name)
        own = module.__name__
        if all(word in before and of != own and not of.startswith(f"{own}.") for word, of in _names().items()):
            raise PluginError(f"plugin {name}: it registers no fault and no invariant")


def plugin_words(names: Sequence[str]) -> list[str]:
    """The `--plugin` options of a command line."""
    return [word for name in names for word in ("--plugin", name)]


def absolute(names: Sequence[str]) -> tuple[str, ...]:
    """The names as they hold in any working folder: files by their whole path."""
    return tuple(str(Path(name).resolve()) if Path(name).is_file() else name for name in names)


def hashed(names: Iterable[str]) -> dict[str, str]:
    """Each name with the sha256 of its file or of its module's file; empty if that is not found."""
    return {name: sha256(Path(name)) or what_imports(f"{name}:", [str(Path.cwd())]).entry_hash or "" for name in names}


def _names() -> dict[str, str]:
    """The module of each fault and each invariant."""
    faults = {f"fault {name}": cls.__module__ for name, cls in registered().items()}
    return faults | {f"invariant {name}": str(getattr(it.run, "__module__", "")) for name, it in known().items()}


def _import(name: str) -> ModuleType:
    path = Path(name)
    if path.suffix == ".py" or "/" in name:
        return _import_file(name, path)
    _look_in(Path.cwd())
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as wrong:
        if isinstance(wrong, ModuleNotFoundError) and name.startswith(str(wrong.name)):
            raise PluginError(f"plugin {name}: no such module, here or installed (a file ends in .py)") from None
        raise _failed(name, wrong) from None


def _import_file(name: str, path: Path) -> ModuleType:
    if not path.is_file() or path.suffix != ".py":
        raise PluginError(f"plugin {name}: no such file" if not path.exists() else f"plugin {name}: no Python file")
    module_name = f"wedgehog_plugin_{path.stem}"
    held = sys.modules.get(module_name)
    if held is not None and held.__file__ == str(path.resolve()):
        return held
    spec = importlib.util.spec_from_file_location(module_name, path.resolve())
    assert spec is not None and spec.loader is not None  # noqa: S101  a .py file always has them
    module = sys.modules[module_name] = importlib.util.module_from_spec(spec)
    _look_in(path.resolve().parent)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as wrong:
        del sys.modules[module_name]
        raise _failed(name, wrong) from None
    return module


def _look_in(folder: Path) -> None:
    """A plugin may import modules beside it; installed ones come first."""
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


def _failed(name: str, wrong: BaseException) -> PluginError:
    """An error with the plugin's own line, if there is one."""
    frames = traceback.extract_tb(wrong.__traceback__)
    own = [frame for frame in frames if frame.filename != __file__ and "importlib" not in frame.filename]
    line, said = (own[0].lineno if own else None), str(wrong)
    if isinstance(wrong, SyntaxError):
        line, said = wrong.lineno, wrong.msg
    place = f", line {line}" if line else ""
    return PluginError(f"plugin {name}{place}: {type(wrong).__name__}: {' '.join(said.split())}")
