"""Where the message goes on the command line of a program that reads `sys.argv` itself."""

import ast

import pytest

from wedgehog.harness.commands.first_spec.source_argv import words_of_argv, words_of_node


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("def main(folder, message): ...\nmain(*sys.argv[1:])", "{session_dir} {message}"),
        ("async def go(message, session_id): ...\nasyncio.run(go(*sys.argv[1:]))", "{message} {session}"),
        ("history_file, prompt = sys.argv[1:]", "{session_dir}/session {message}"),
        ("[folder, text] = sys.argv[1:3]", "{session_dir} {message}"),
        ("_, thread, question = sys.argv", "{session} {message}"),
        ("print(sys.argv[1])", "{message}"),
        ("path = Path(sys.argv[1])\ntext = sys.argv[2]", "{session_dir}/session {message}"),
        ("session, text = sys.argv[1], sys.argv[2]", "{session} {message}"),
        ("text = sys.argv[2]\nprint(sys.argv[1])", "{message}"),
        ("def main(words, message): ...\nmain(*sys.argv[1:])", ""),
        ("def main(message, text): ...\nmain(*sys.argv[1:])", ""),
        ("url, message = sys.argv[1:]", ""),
        ("folder, message = sys.argv[2:4]", ""),
        ("folder, message = arguments", ""),
        ("main(*sys.argv[1:])", ""),
        ("p = argparse.ArgumentParser()\nfolder, message = sys.argv[1:]", ""),
        ("", ""),
    ],
)
def test_each_argument_is_known_by_its_name(source: str, words: str):
    """A name that says nothing leaves all of them open."""
    assert words_of_argv(ast.parse(source)) == words


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("const [dir, text] = process.argv.slice(2);", "{session_dir} {message}"),
        ("const [, , sessionId, message] = process.argv;", "{session} {message}"),
        ("const historyFile = process.argv[2];\nconst prompt = process.argv[3];", "{session_dir}/session {message}"),
        ("const prompt = process.argv.slice(2).join(' ');", "{message}"),
        ("const [url, text] = process.argv.slice(2);", "{message}"),
        ("const prompt = process.argv[3];", "{message}"),
        ("ask(process.argv[2])", "{message}"),
    ],
)
def test_node_names_its_arguments_too(source: str, words: str):
    """As most programs take only the message, that is the guess where the names say nothing."""
    assert words_of_node(source) == words
