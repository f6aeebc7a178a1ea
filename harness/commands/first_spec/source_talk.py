"""What the source of a program shows of its start, and of messages and answers on its lines. Nothing is executed."""

import ast
import re

from wedgehog.harness.commands.first_spec.source_handed import keys_read_where_handed, keys_written_where_handed
from wedgehog.harness.commands.first_spec.source_reading import (
    ANSWERS,
    ERRORS,
    QUESTIONS,
    called_name,
    calls,
    keys_read,
    keys_read_at_once,
    keys_written,
    likeliest,
    likeliest_or_only,
    names_given,
)


def lines_of(tree: ast.Module) -> dict[str, object]:
    """The keys beside `start` of a program that takes lines, at a prompt or as JSON on its stdin; else empty."""
    if prompt := prompt_of(tree):
        sign = f"^{re.escape(prompt).replace(chr(92) + ' ', ' ')}$"
        return {"ready": sign, "done": sign}
    loads = [it for it in calls(tree) if called_name(it) == "loads"]
    parsed = {name for it in loads for name in names_given(tree, it)}
    handed = keys_read_where_handed(tree, parsed | {ast.unparse(it) for it in loads})
    asked = likeliest_or_only(QUESTIONS, keys_read(tree, parsed) | keys_read_at_once(tree) | handed)
    printed = {key for it in calls(tree) if called_name(it) == "dumps" for key in keys_written(it)}
    printed |= keys_written_where_handed(tree)
    said = likeliest_or_only(ANSWERS, printed)
    plain = not asked and not any(_lines(tree) & _names(it) for it in loads)
    if not _reads_stdin(tree) or not (asked or plain):
        return {}
    if not said:
        return {"done": f"^{re.escape(end)}$"} if plain and (end := _end_of_an_answer(tree)) else {}
    key, wrong = said.rpartition(".")[2], likeliest(ERRORS, printed)
    send: dict[str, object] = {} if plain else {"send": {asked: "{message}"}}
    keys = {**send, "done": f'"{key}":.*}}$', "answer": f"jsonl:{said}"}
    return keys | {"done": f'"({key}|{wrong})":.*}}$', "error": f"jsonl:{wrong}"} if wrong else keys


def _lines(tree: ast.Module) -> set[str]:
    """The names of a line of stdin."""
    loops = [it for it in ast.walk(tree) if isinstance(it, ast.For | ast.AsyncFor)]
    found = {name for it in loops if "stdin" in ast.unparse(it.iter) for name in _names(it.target)}
    named = (it for it in ast.walk(tree) if isinstance(it, ast.NamedExpr) and "stdin" in ast.unparse(it.value))
    reads = (it for it in calls(tree) if called_name(it) == "readline")
    return found | {it.target.id for it in named} | {name for it in reads for name in names_given(tree, it)}


def _names(tree: ast.AST) -> set[str]:
    return {it.id for it in ast.walk(tree) if isinstance(it, ast.Name)}


def _end_of_an_answer(tree: ast.Module) -> str:
    """The text that the loop over stdin prints last, each time; empty if it prints none."""
    for loop in (it for it in ast.walk(tree) if isinstance(it, ast.For) and "sys.stdin" in ast.unparse(it.iter)):
        match loop.body[-1]:
            case ast.Expr(value=ast.Call(func=ast.Name(id="print"), args=[ast.Constant(value=str(text))])):
                return text
    return ""


def _reads_stdin(tree: ast.Module) -> bool:
    """Whether a loop takes one line of stdin after another."""
    for node in ast.walk(tree):
        if isinstance(node, ast.For | ast.AsyncFor) and "sys.stdin" in ast.unparse(node.iter):
            return True
        if isinstance(node, ast.While) and "sys.stdin.readline" in ast.unparse(node):
            return True
    return _reads_stdin_as_a_stream(tree)


def _reads_stdin_as_a_stream(tree: ast.Module) -> bool:
    """Whether it connects stdin to an asyncio stream, and reads lines of a stream in a loop."""
    if not any(called_name(it) == "connect_read_pipe" and "sys.stdin" in ast.unparse(it) for it in calls(tree)):
        return False
    loops = (node for node in ast.walk(tree) if isinstance(node, ast.While | ast.AsyncFor))
    return any(isinstance(it, ast.AsyncFor) or ".readline()" in ast.unparse(it) for it in loops)


_OWN_PORT = re.compile(r"['\"]--port['\"]")
_PORT_VARIABLE = re.compile(
    r"\b(?:environ(?:\.get\(|\[)|getenv\()\s*['\"]PORT['\"]|\bprocess\.env\.PORT\b|\bPORT\b[^}]*\}\s*=\s*process\.env\b"
)
_PORT_ARGUMENT = re.compile(r"(?:\.listen\(|\bport\s*=)[^;\n]{0,40}\bprocess\.argv(?:\[2\]|\.at\(2\))", re.IGNORECASE)
_SERVES = re.compile(
    r"\bserve_forever\(|\brun_app\(|\buvicorn\.run\(|\.run\(.*\bport=|\bstart_server\(|\bserve\(|\.listen\("
)
_ARGV = re.compile(r"(?<!\bin )\bsys\.argv\b")
_ARGUMENTS = re.compile(r"^\s*(?:from|import)(?: .*,)? (?:argparse|click|typer|fire)\b", re.MULTILINE)
_RUNS = ("asyncio.run", "anyio.run", "trio.run")
_BLOCKS = ("serve_forever", "run_forever", "run_app", "parse_args", "mainloop")


def on_port(text: str, command: str) -> str:
    """A server's command line with its port: an option, an argument or the variable PORT; empty if none is shown."""
    if not _SERVES.search(text):
        return ""
    if _OWN_PORT.search(text):
        return f"{command} --port {{port}}"
    if _PORT_VARIABLE.search(text):
        return f"PORT={{port}} {command}"
    return f"{command} {{port}}" if _PORT_ARGUMENT.search(text) else ""


def takes_arguments(text: str) -> bool:
    """Whether the program reads its command line."""
    return bool(reads_argv(text) or _ARGUMENTS.search(text))


def reads_argv(text: str) -> bool:
    """Whether it reads `sys.argv` itself, and does not only look for an option in it."""
    return bool(_ARGV.search(text))


def prompt_of(tree: ast.Module) -> str:
    """The text with which the program asks for the next message in a loop, `input("> ")`; empty without one."""
    for loop in (node for node in ast.walk(tree) if isinstance(node, ast.While)):
        for call in calls(loop):
            match call:
                case ast.Call(func=ast.Name(id="input"), args=[ast.Constant(value=str(prompt))]) if prompt.strip():
                    return prompt.rsplit("\n", 1)[-1]
    return ""


def is_program(text: str, tree: ast.Module) -> bool:
    """Whether the file does something when it is started."""
    stays = any(isinstance(node, ast.While | ast.For | ast.AsyncFor | ast.With) for node in tree.body)
    return stays or "__main__" in text or runs_when_imported(tree)


def runs_when_imported(tree: ast.Module) -> bool:
    """Whether an import of the module starts the program, because no `if __name__ …` stands before it."""
    if any(isinstance(node, ast.While) for node in tree.body):
        return True
    plain = (node for node in tree.body if isinstance(node, ast.Expr | ast.Assign))
    called = (call.func for node in plain for call in calls(node))
    return any(isinstance(it, ast.Attribute) and (it.attr in _BLOCKS or ast.unparse(it) in _RUNS) for it in called)
