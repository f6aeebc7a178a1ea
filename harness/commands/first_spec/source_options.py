"""How a Python program takes the message on its command line: as an argument, an option, or behind a subcommand."""

import ast
from collections.abc import Iterator

from wedgehog.harness.commands.first_spec.source_argv import words_of_argv
from wedgehog.harness.commands.first_spec.source_reading import (
    QUESTIONS,
    Function,
    called_name,
    calls,
    functions,
    last_name,
)

MESSAGE = "{message}"
GOES_ON = ("continue", "resume", "continue_", "continue_last", "continue_session", "go_on", "last")
"""The usual names of the flag with which a program goes on with the last conversation."""


def message_words(tree: ast.Module) -> str:
    """The words behind the program's name, `--prompt {message}`; the message alone if the source shows no option."""
    return shown_words(tree) or MESSAGE


def resume_flag(tree: ast.Module) -> str:
    """The flag with which the next message goes on with the last conversation, `--continue`; empty without one."""
    for it in calls(tree):
        given = {word.arg: ast.unparse(word.value) for word in it.keywords}
        is_flag = given.get("action") == "'store_true'" or given.get("is_flag") == "True"
        flags = [text for text in _texts(it.args) if text[:1] == "-"]
        if is_flag and any(flag.lstrip("-").replace("-", "_") in GOES_ON for flag in flags):
            return _long(flags)
    return ""


def shown_words(tree: ast.Module) -> str:
    """The same words; empty if the source does not show where the message goes."""
    return _of_argparse(tree) or _of_commands(tree) or words_of_argv(tree)


def _of_argparse(tree: ast.Module) -> str:
    """Of `add_argument`, unless a positional argument is a message."""
    given = [_texts(it.args) for it in calls(tree) if called_name(it) == "add_argument" and it.args]
    if any(names[:1] and names[0] in QUESTIONS for names in given):
        return MESSAGE
    return next((f"{option} {MESSAGE}" for names in given if (option := _message_option(names))), "")


def _of_commands(tree: ast.Module) -> str:
    """Of Click or Typer: the function that takes a message, behind its name if it is one of several commands."""
    commands = [(it, name) for it in functions(tree) if (name := _command_name(it)) is not None]
    for function, name in commands:
        words = next(filter(None, (*_of_click(function), *_of_typer(function))), "")
        if words:
            return f"{name} {words}" if _is_subcommand(tree, function, len(commands)) else words
    return ""


def _of_click(function: Function) -> Iterator[str]:
    """Of decorators: `@click.argument("message")`, `@click.option("-m", "--message")`."""
    for it in function.decorator_list:
        called, texts = (called_name(it), _texts(it.args)) if isinstance(it, ast.Call) else ("", [])
        if called == "argument" and texts and texts[0] in QUESTIONS:
            yield MESSAGE
        if called == "option" and (option := _message_option(texts)):
            yield f"{option} {MESSAGE}"


def _of_typer(function: Function) -> Iterator[str]:
    """Of parameters: one without a default is an argument, others are options unless they say `Argument`."""
    given = function.args
    defaults = [None] * (len(given.args) - len(given.defaults)) + list(given.defaults)
    pairs = [*zip(given.args, defaults, strict=True), *zip(given.kwonlyargs, given.kw_defaults, strict=True)]
    clicks = any(
        isinstance(it, ast.Call) and called_name(it) in ("option", "argument") for it in function.decorator_list
    )
    for it, default in () if clicks else pairs:
        made = [call for part in (default, it.annotation) if part is not None for call in calls(part)]
        says = {called_name(call) for call in made}
        flags = [
            text for call in made if called_name(call) == "Option" for text in _texts(call.args) if text[:1] == "-"
        ]
        if "Argument" in says or (default is None and "Option" not in says):
            yield MESSAGE if it.arg in QUESTIONS else ""
        elif it.arg in QUESTIONS or _message_option(flags):
            yield f"{_long(flags) or '--' + it.arg.replace('_', '-')} {MESSAGE}"


def _message_option(names: list[str]) -> str:
    """The option among the names of one option whose name is that of a message; empty if it is not."""
    flags = [name for name in names if name.startswith("-")]
    said = {name.lstrip("-").replace("-", "_") for name in names}
    return _long(flags) if flags and said & set(QUESTIONS) else ""


def _long(flags: list[str]) -> str:
    return next((flag for flag in flags if flag.startswith("--")), flags[0] if flags else "")


def _command_name(function: Function) -> str | None:
    """The name of a function as a command; None if it is none."""
    for it in function.decorator_list:
        if last_name(it.func if isinstance(it, ast.Call) else it) == "command":
            named = [word.value for word in it.keywords if word.arg == "name"] if isinstance(it, ast.Call) else []
            given = it.args if isinstance(it, ast.Call) else []
            return next(iter(_texts([*given, *named])), function.name.replace("_", "-"))
    return None


def _is_subcommand(tree: ast.Module, function: Function, commands: int) -> bool:
    """Whether the command belongs to a Click group, or to a Typer app with more commands or a callback."""
    decorators = [it for each in functions(tree) for it in each.decorator_list]
    named = {ast.unparse(it.func if isinstance(it, ast.Call) else it) for it in decorators}
    own = next((it for it in function.decorator_list if "command" in ast.unparse(it)), None)
    owner = ast.unparse(own).partition(".")[0] if own is not None else ""
    if owner == "click" or not owner:
        return False
    groups = {it.name for it in functions(tree) if any("group" in ast.unparse(each) for each in it.decorator_list)}
    return owner in groups or commands > 1 or f"{owner}.callback" in named


def _texts(values: list[ast.expr]) -> list[str]:
    return [it.value for it in values if isinstance(it, ast.Constant) and isinstance(it.value, str)]
