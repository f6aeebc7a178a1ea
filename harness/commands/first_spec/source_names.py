"""What the names of a Python project stand for, also those of its other files. Nothing is executed."""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from wedgehog.harness.commands.first_spec.source_reading import Function, called_name, calls, functions, last_name

Trees = Mapping[Path, ast.Module]
_MOST_STEPS = 8
"""So many imports of an import are followed."""


class Made(NamedTuple):
    """A name that a module gives to the result of a call."""

    file: Path
    name: str
    call: ast.Call


def module_of(path: Path) -> str:
    """The dotted name of a file, as seen from the project's folder."""
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


@dataclass(frozen=True)
class SourceNames:
    """The names of a project's modules."""

    trees: Trees

    def made(self, file: Path, name: ast.expr) -> Made | None:
        """The call whose result this expression of a file stands for; None if the source does not show it."""
        found = self._defined(file, name)
        if found is None:
            return None
        for node in self.trees[found[0]].body:
            match node:
                case (
                    ast.Assign(targets=[ast.Name(id=target)], value=ast.Call() as call)
                    | ast.AnnAssign(target=ast.Name(id=target), value=ast.Call() as call)
                ) if target == found[1]:
                    return Made(found[0], target, call)
        return None

    def function(self, file: Path, name: ast.expr) -> Function | None:
        """The function that this expression stands for; of an object, the project's one function of that name."""
        found = self._defined(file, name)
        if found is None and isinstance(name, ast.Attribute):
            named = [it for functions_of in self._functions.values() for it in functions_of.get(name.attr, ())]
            return named[0] if len(named) == 1 else None
        return next(iter(self._functions[found[0]].get(found[1], ())), None) if found else None

    @cached_property
    def _functions(self) -> Mapping[Path, Mapping[str, Sequence[Function]]]:
        """The functions of each file, by name. A large project has thousands, and is asked for many names."""
        found: dict[Path, dict[str, list[Function]]] = {file: {} for file in self.trees}
        for file, tree in self.trees.items():
            for function in functions(tree):
                found[file].setdefault(function.name, []).append(function)
        return found

    def app_of(self, file: Path, call: ast.Call, makers: Mapping[str, str]) -> str:
        """The web framework whose app a call makes, itself or by a function of the project; empty if none."""
        if (called := called_name(call)) in makers:
            return called
        factory = self.function(file, call.func)
        return self.made_in(factory, makers) if factory else ""

    def made_in(self, factory: Function, makers: Mapping[str, str]) -> str:
        """The web framework whose app a function makes and returns; empty if none."""
        if not any(isinstance(it, ast.Return) and it.value is not None for it in ast.walk(factory)):
            return ""
        return next((called for it in calls(factory) if (called := called_name(it)) in makers), "")

    def fields(self, annotation: ast.expr | None) -> dict[str, bool]:
        """The fields of the class that an annotation names, each with whether it must be given."""
        named = {it.id for it in ast.walk(annotation) if isinstance(it, ast.Name)} if annotation else set()
        bodies = (
            node.body
            for tree in self.trees.values()
            for node in ast.walk(tree)
            if isinstance(node, ast.ClassDef) and node.name in named
        )
        lines = (line for line in next(bodies, []) if isinstance(line, ast.AnnAssign))
        return {line.target.id: _must_be_given(line) for line in lines if isinstance(line.target, ast.Name)}

    def text(self, value: ast.expr | None) -> str:
        """A text, or that of a constant which has one value in the whole project; empty if the source shows none."""
        if isinstance(value, ast.Constant):
            return str(value.value or "")
        name = last_name(value)
        found = {text for tree in self.trees.values() for text in _texts(tree, name)} if name else set()
        return found.pop() if len(found) == 1 else ""

    def _defined(self, file: Path, name: ast.expr, steps: int = _MOST_STEPS) -> tuple[Path, str] | None:
        """The file that defines what `name` or `module.name` stands for, and its name there."""
        if isinstance(name, ast.Attribute) and isinstance(name.value, ast.Name):
            module = self._imported(file, name.value.id, steps)
            return self._defined(module[0], ast.Name(name.attr), steps - 1) if module and not module[1] else None
        if not isinstance(name, ast.Name) or not steps:
            return None
        found = self._imported(file, name.id, steps)
        if found is None:
            return file, name.id
        return self._defined(found[0], ast.Name(found[1]), steps - 1) if found[1] else None

    def _imported(self, file: Path, name: str, steps: int) -> tuple[Path, str] | None:
        """The file from which a name comes, and its name there, empty for the module itself."""
        for node in ast.walk(self.trees[file]) if steps else ():
            for it in node.names if isinstance(node, ast.ImportFrom | ast.Import) else ():
                if (it.asname or it.name) != name:
                    continue
                base = _absolute(file, node) if isinstance(node, ast.ImportFrom) else ""
                if whole := self._file(f"{base}.{it.name}".strip(".")):
                    return whole, ""
                if source := self._file(base):
                    return source, it.name
        return None

    def _file(self, module: str) -> Path | None:
        """The project's file of a module; its folder may lie anywhere in the project, as in `src`."""
        files = ((f".{module_of(path)}", path) for path in self.trees)
        return next((path for name, path in files if module and name.endswith(f".{module}")), None)


def _absolute(file: Path, node: ast.ImportFrom) -> str:
    """The module of `from … import`, where dots count from the file's package."""
    folders = file.parent.parts[: len(file.parent.parts) - node.level + 1] if node.level else ()
    return ".".join((*folders, *filter(None, [node.module])))


def _must_be_given(line: ast.AnnAssign) -> bool:
    """Whether a field of a model has no default, and may not be null."""
    match line.value:
        case None:
            given = False
        case ast.Call(func=ast.Name(id="Field"), args=[ast.Constant(value=value), *_]):
            given = value is not ...
        case ast.Call(func=ast.Name(id="Field"), args=[], keywords=words):
            given = bool({"default", "default_factory"} & {word.arg for word in words})
        case _:
            given = True
    return not given and not re.search(r"\bNone\b|\bOptional\b", ast.unparse(line.annotation))


def _texts(tree: ast.Module, name: str) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case (
                ast.Assign(targets=[ast.Name(id=target)], value=ast.Constant(value=str(text)))
                | ast.AnnAssign(target=ast.Name(id=target), value=ast.Constant(value=str(text)))
            ) if target == name:
                yield text
