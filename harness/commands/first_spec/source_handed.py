"""What a Python program does with a value that it hands to a function of the same file. Nothing is executed."""

import ast
from collections.abc import Iterator, Mapping

from wedgehog.harness.commands.first_spec.source_reading import (
    Function,
    called_name,
    calls,
    functions,
    keys_read,
    keys_written,
    last_name,
)


def keys_read_where_handed(tree: ast.Module, values: set[str]) -> set[str]:
    """The keys that functions read of these values: `turn(value)`, `pool.submit(turn, value)`, `args=(value,)`."""
    own = {it.name: it for it in functions(tree)}
    keys: set[str] = set()
    seen: set[tuple[str, str]] = set()
    left: list[tuple[ast.AST, set[str]]] = [(tree, values)]
    while left:
        for function, name in _handed(*left.pop(), own):
            if (function.name, name) not in seen:
                seen.add((function.name, name))
                left.append((function, {name}))
                keys |= keys_read(function, {name})
    return keys


def keys_written_where_handed(tree: ast.Module) -> set[str]:
    """The keys of what functions of the program get that print it as JSON: `emit({"reply": text})`."""
    printers = {it.name for it in functions(tree) if _prints(it)}
    found = (call for call in calls(tree) if called_name(call) in printers)
    return {key for call in found for key in keys_written(call)}


def _handed(scope: ast.AST, values: set[str], own: Mapping[str, Function]) -> Iterator[tuple[Function, str]]:
    """The functions that get one of these values, each with the name of its parameter."""
    for call in calls(scope):
        target = [it.value for it in call.keywords if it.arg == "target"]
        more = [each for it in call.keywords if it.arg == "args" for each in getattr(it.value, "elts", [])]
        places = [call.func, *target, *call.args, *more]
        callee = next((it for it, place in reversed([*enumerate(places)]) if last_name(place) in own), None)
        if callee is None:
            continue
        function = own[last_name(places[callee])]
        names = _parameters(function)
        handed = zip(names, places[callee + 1 :], strict=False)
        yield from ((function, name) for name, it in handed if ast.unparse(it) in values)
        yield from ((function, it.arg) for it in call.keywords if it.arg in names and ast.unparse(it.value) in values)


def _parameters(function: Function) -> list[str]:
    names = [it.arg for it in (*function.args.posonlyargs, *function.args.args)]
    return names[1:] if names[:1] in (["self"], ["cls"]) else names


def _prints(function: Function) -> bool:
    """Whether it prints one of its parameters as JSON."""
    names = {*_parameters(function), getattr(function.args.kwarg, "arg", "")}
    prints = (it for it in calls(function) if called_name(it) == "print" or "sys.stdout" in ast.unparse(it.func))
    dumped = (it for shown in prints for it in calls(shown) if called_name(it) == "dumps")
    return any(getattr(it, "id", "") in names for call in dumped for it in call.args)
