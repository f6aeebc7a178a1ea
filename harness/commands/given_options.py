"""Which options of a command the user gave, for options that exclude each other."""

from collections.abc import Iterable

import typer


def refuse_beside(context: typer.Context, option: str, names: Iterable[str], why: str) -> None:
    """ValueError if one of the parameters `names` was given on the command line beside `option`."""
    if given := [name for name in context.params if name in names and _is_given(context, name)]:
        wrong = ", ".join(_as_written(context, name) for name in given)
        raise ValueError(f"{option}: {why}; leave out {wrong}")


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _as_written(context: typer.Context, name: str) -> str:
    """A parameter as the help names it."""
    found = next(it for it in context.command.params if it.name == name)
    return max(found.opts, key=len) if found.param_type_name == "option" else str(found.name).upper()
