"""What the source of a Python program shows of how it gets its messages. Nothing is executed."""

import ast
import re

_OWN_PORT = re.compile(r"['\"]--port['\"]")
_SERVES = re.compile(r"\bserve_forever\(|\brun_app\(|\buvicorn\.run\(|\.run\(.*\bport=|\bstart_server\(")
_ARGUMENTS = re.compile(r"\bsys\.argv\b|^\s*(?:from|import) (?:argparse|click|typer|fire)\b", re.MULTILINE)
_BLOCKS = ("serve_forever", "run_forever", "run_app", "parse_args", "mainloop")


def takes_a_port(text: str) -> bool:
    """Whether the program is a server with an option for its port."""
    return bool(_OWN_PORT.search(text) and _SERVES.search(text))


def takes_arguments(text: str) -> bool:
    """Whether the program reads its command line."""
    return bool(_ARGUMENTS.search(text))


def prompt_of(tree: ast.Module) -> str:
    """The text with which the program asks for the next message in a loop, `input("> ")`; empty without one."""
    for loop in (node for node in ast.walk(tree) if isinstance(node, ast.While)):
        for call in (node for node in ast.walk(loop) if isinstance(node, ast.Call)):
            match call:
                case ast.Call(func=ast.Name(id="input"), args=[ast.Constant(value=str(prompt))]) if prompt.strip():
                    return prompt.rsplit("\n", 1)[-1]
    return ""


def runs_when_imported(tree: ast.Module) -> bool:
    """Whether an import of the module starts the program, because no `if __name__ …` stands before it."""
    if any(isinstance(node, ast.While) for node in tree.body):
        return True
    plain = (node for node in tree.body if isinstance(node, ast.Expr | ast.Assign))
    calls = (call for node in plain for call in ast.walk(node) if isinstance(call, ast.Call))
    return any(isinstance(call.func, ast.Attribute) and call.func.attr in _BLOCKS for call in calls)
