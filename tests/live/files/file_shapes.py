"""Sound agents whose tools for files have other shapes, and bugs of such shapes: variants of those in filing.py.

`blocks` takes blocks of lines that are searched and replaced, `diffs` takes unified diffs of several files,
`formatting` formats each file that it has written, `on_a_copy` works in a folder of its own and brings what has
changed when the turn is over, `late` brings it with the next message, and `proposing` collects edits until the turn
ends.
"""

import re
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from filing import FLAT, STRING, Agent, ToolError, agent, tool


def described(name, says, **parameters):
    made = tool(name, **parameters)
    made["function"]["description"] = says
    return made


BLOCKS = [
    tool("read_file", path=STRING),
    tool("write_to_file", path=STRING, content=STRING),
    described(
        "replace_in_file",
        "Takes blocks: <<<<<<< SEARCH\nold lines\n=======\nnew lines\n>>>>>>> REPLACE",
        path=STRING,
        diff=STRING,
    ),
]
DIFFS = [tool("read_file", path=STRING), described("apply_patch", "Applies a unified diff.", patch=STRING)]


class Blocks(Agent):
    """As Cline: each block must be in the file once."""

    tools = BLOCKS

    async def perform(self, name, given):
        if name == "read_file":
            return await self.text_of(given["path"])
        if name == "write_to_file":
            return await self.write(given["path"], given["content"])
        blocks = re.findall(r"<{7} SEARCH\n(.*?)={7}\n(.*?)>{7} REPLACE", given["diff"], re.DOTALL)
        if not blocks:
            raise ToolError("no block was found")
        return await self.edit(given["path"], blocks)


class Diffs(Agent):
    """All hunks of a patch fit, or nothing is changed."""

    tools = DIFFS

    async def perform(self, name, given):
        if name == "read_file":
            return await self.text_of(given["path"])
        files = re.split(r"(?m)^--- ", given["patch"])[1:]
        if not files:
            raise ToolError("this is no unified diff")
        return "\n".join([await self.patched(lines.splitlines(keepends=True)) for lines in files])

    async def patched(self, lines):
        old_name, new_name = lines[0].strip(), lines[1].removeprefix("+++ ").strip().removeprefix("b/")
        body = [line for line in lines[2:] if not line.startswith("@@")]
        old, new = ("".join(line[1:] for line in body if line[0] in (sign, " ")) for sign in "-+")
        if "ignores-misfits" in self.bugs:
            old = old if old in Path(new_name).read_text() else ""
        if old_name == "/dev/null":
            return await self.write(new_name, new)
        return await self.edit(new_name, [(old, new)])


class Formatting(Agent):
    """Its formatter knows HTML and shell, and takes blanks from the ends of lines everywhere."""

    def store(self, path, data):
        if Path(path).suffix in (".html", ".sh"):
            data = data.replace(b"'", b'"')
        super().store(path, re.sub(rb"[ \t]+(?=\r?\n)", b"", data))


class OnACopy(Agent):
    """A file that has changed outside of the copy is not written over."""

    def copied(self, path):
        """Where a file of the project is in the copy."""
        return str(self.copy / Path(path).resolve().relative_to(Path.cwd().resolve()))

    async def perform(self, name, given):
        places = {key: self.copied(value) for key, value in given.items() if key in ("file_path", "path")}
        return await super().perform(name, given | places)

    async def answer(self, message):
        with tempfile.TemporaryDirectory() as folder:
            self.copy = Path(folder) / "copy"
            shutil.copytree(
                Path.cwd(), self.copy, symlinks=True, ignore=lambda at, names: [it for it in names if special(at, it)]
            )
            self.first = {path: path.read_bytes() for path in self.files()}
            answer = await super().answer(message)
            return "\n".join([answer, *self.brought()])

    def files(self):
        return [path for path in self.copy.rglob("*") if path.is_file()]

    def brought(self):
        for path in self.files():
            data, there = path.read_bytes(), Path.cwd() / path.relative_to(self.copy)
            if data == self.first.get(path):
                continue
            mine = (there.read_bytes() if there.exists() else None) == self.first.get(path)
            if mine or "writes-over-its-user" in self.bugs:
                there.parent.mkdir(parents=True, exist_ok=True)
                there.write_bytes(data)
            else:
                yield f"{there.name} was changed meanwhile; my change is not in it."


def special(folder, name):
    """Whether it is neither a file nor a folder, such as a pipe."""
    path = Path(folder) / name
    return not (path.is_file() or path.is_dir())


class Late(OnACopy):
    """What has changed is kept in the session, and comes into the project with the next message."""

    def brought(self):
        with tempfile.TemporaryDirectory() as folder:
            kept = self.file.parent / "changed"
            for path in self.files():
                if path.read_bytes() != self.first.get(path):
                    place = Path(folder) / path.relative_to(self.copy)
                    place.parent.mkdir(parents=True, exist_ok=True)
                    place.write_bytes(path.read_bytes())
                    before = self.first.get(path)
                    if before is not None:
                        Path(f"{place}.before").write_bytes(before)
            shutil.copytree(folder, kept, symlinks=True, dirs_exist_ok=True)
        return ()

    async def answer(self, message):
        kept = self.file.parent / "changed"
        for path in [it for it in kept.rglob("*") if it.is_file() and not it.name.endswith(".before")]:
            there, before = Path.cwd() / path.relative_to(kept), Path(f"{path}.before")
            same = (there.read_bytes() if there.exists() else None) == (
                before.read_bytes() if before.exists() else None
            )
            if same or "writes-over-its-user" in self.bugs:
                there.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, there)
        shutil.rmtree(kept, ignore_errors=True)
        return await super().answer(message)


class Proposing(Agent):
    """Its edits are proposals, which are made when the turn ends."""

    tools = FLAT

    def __init__(self, *given):
        super().__init__(*given)
        self.proposed, self.known = {}, {}

    def before(self, path):
        if path not in self.proposed:
            self.known[path] = Path(path).read_bytes()
        return self.proposed.get(path, self.known.get(path))

    def store(self, path, data):
        if Path(path).is_dir():
            raise ToolError(f"{path} is a folder")
        if path not in self.known:
            self.known[path] = Path(path).read_bytes() if Path(path).exists() else None
        self.proposed[path] = data

    async def edit(self, path, edits):
        """The text is proposed; its time does not matter."""
        text = self.before(path).decode("utf-8", "surrogateescape")
        for old, new in edits:
            text = self.replaced(path, text, old, new)
        self.store(path, text.encode("utf-8", "surrogateescape"))
        return f"Proposed: {path} changes when your turn ends."

    async def answer(self, message):
        answer = await super().answer(message)
        for path, data in self.proposed.items():
            if "forgets-all-but-the-last" not in self.bugs or path == list(self.proposed)[-1]:
                super().store(path, data)
        return answer


class Clumsy(Agent):
    """With bugs of tools that put one text in the place of another."""

    def replaced(self, path, text, old, new):
        if "expands-tabs" in self.bugs:
            text, old, new = (it.expandtabs() for it in (text, old, new))
        if "ends-lines-twice" in self.bugs and old.endswith("\n"):
            new += "\n"
        if "joins-lines" in self.bugs:
            new = new.rstrip("\n")
        if "takes-the-first-line" in self.bugs:
            old = old.splitlines()[0]
        return super().replaced(path, text, old, new)

    def store(self, path, data):
        if "never-shortens" in self.bugs and Path(path).exists():
            with open(path, "r+b") as file:  # noqa: PTH123
                file.write(data)
        else:
            super().store(path, data)


blocks, diffs, formatting, on_a_copy, late, proposing = (
    agent(kind) for kind in (Blocks, Diffs, Formatting, OnACopy, Late, Proposing)
)
ignores_misfits = agent(Diffs, "ignores-misfits")
writes_over_its_user = agent(Late, "writes-over-its-user")
forgets_all_but_the_last = agent(Proposing, "forgets-all-but-the-last")
expands_tabs, ends_lines_twice, joins_lines, takes_the_first_line, never_shortens = (
    agent(Clumsy, bug)
    for bug in ("expands-tabs", "ends-lines-twice", "joins-lines", "takes-the-first-line", "never-shortens")
)
