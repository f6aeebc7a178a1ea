"""What the names of a project stand for."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from wedgehog.harness.commands.first_spec import source_names
from wedgehog.harness.commands.first_spec.source_names import SourceNames
from wedgehog.harness.commands.first_spec.source_reading import Function, functions

FILES = 30


def test_each_file_is_searched_for_its_functions_once(monkeypatch: pytest.MonkeyPatch):
    """A project has hundreds of files and of names: to search all for each name takes half a minute."""
    searched: list[ast.Module] = []

    def counted(tree: ast.Module) -> Iterator[Function]:
        searched.append(tree)
        return functions(tree)

    monkeypatch.setattr(source_names, "functions", counted)
    trees = {Path(f"m{number}.py"): ast.parse(f"def f{number}(): ...\ndef both(): ...") for number in range(FILES)}
    names = SourceNames(trees)
    found = [names.function(Path("m0.py"), ast.parse(f"it.f{number}", mode="eval").body) for number in range(FILES)]
    assert [it and it.name for it in found] == [f"f{number}" for number in range(FILES)]
    assert names.function(Path("m0.py"), ast.parse("it.both", mode="eval").body) is None
    assert len(searched) == FILES
