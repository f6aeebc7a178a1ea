"""What a file may hold after calls of file tools: what stood in it, changed by some of the calls, in their order."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from wedgehog.harness.record.events.files import FileCall, FileSeen, FilesSeen
from wedgehog.harness.record.history import History
from wedgehog.harness.record.views import ToolUse

BYTE_ORDER_MARK = "\ufeff"
MOST_CALLS = 8
"""With more calls on one file there would be too many versions."""
_BYTE = re.compile(r"\\x([0-9a-f]{2})")
_TWO_KINDS = re.compile(r"\r\n(?s:.*)(?<!\r)\n|(?<!\r)\n(?s:.*)\r\n")
_NO_UTF_8 = re.compile(r"\\x[89a-f][0-9a-f]")


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file between two looks at it, and the calls of its turn that were to change it."""

    turn: int
    before: FileSeen
    now: FileSeen
    seen: FilesSeen
    uses: Sequence[ToolUse]
    halves: Sequence[ToolUse] = ()
    """Such calls of which only a part arrived."""
    left: FileSeen | None = None
    """What it held at the end of the turn before, if its user has written into it since."""
    late: Sequence[ToolUse] = ()
    """Calls that may have an effect on it too: those of earlier turns without one so far, because some agents work on a
    copy and bring it when a turn is over, and those of a symbolic link to it."""

    def versions(self, *, with_use: ToolUse | None = None, without: ToolUse | None = None) -> frozenset[str]:
        """The texts that it may hold now: all, or those in which one of the calls has its effect, or has none."""
        found = {(self.before.text or "", False)}
        for use in (*self.late, *self.uses):
            if use.offered.file is not None and use is not without:
                mine = with_use is not None and use.token == with_use.token
                found |= {(after, has or mine) for text, has in found for after in applied(use.offered.file, text)}
        return frozenset(text for text, has in found if has or with_use is None)

    def possible(self, *, with_use: ToolUse | None = None) -> list[str]:
        """These texts as they are compared, in their order."""
        return sorted({self.compared(text) for text in self.versions(with_use=with_use)})

    @property
    def foreseen(self) -> bool:
        """Whether its calls can have left it as it is now."""
        return self.compared(self.now.text or "") in self.possible()

    @property
    def harmed(self) -> bool:
        """Whether it holds what none of its calls leads to; what each of them did is not known then."""
        return self.now.text is not None and not self.foreseen

    def has_effect(self, use: ToolUse) -> bool:
        """Whether it holds what some of the calls make of it, this one among them."""
        return self.now.text is not None and self.compared(self.now.text) in self.possible(with_use=use)

    @property
    def stale(self) -> bool:
        """Whether its user has written something else into it since the turn before."""
        return self.left is not None and self.left.sha256 != self.before.sha256

    def compared(self, text: str) -> str:
        """A text as it is compared: without what tools may change in good faith.

        In a file with line ends of two kinds that is each of them too: many tools write back the one that they saw.
        """
        mixed = _TWO_KINDS.search(self.before.text or "") is not None
        return loosely(text.replace("\r\n", "\n") if mixed else text)

    @property
    def changed(self) -> bool:
        """Whether it holds something else than before."""
        return (self.before.kind, self.before.sha256) != (self.now.kind, self.now.sha256)


def applied(action: FileCall, text: str) -> frozenset[str]:
    r"""The texts that a call can make of a text; none if an edit does not fit.

    In a file with the line ends of Windows, the model's lines may get these or not; the other lines keep theirs. A
    file that is written anew may keep its kind of line ends.

    >>> sorted(applied(FileCall("edit_file", "a.txt", old="a", new="b"), "a a"))
    ['b a', 'b b']
    >>> sorted(applied(FileCall("edit_file", "a.txt", old="a", new="b\nc"), "a\r\n"))
    ['b\nc\r\n', 'b\r\nc\r\n']
    """
    if action.role == "write_file":
        return frozenset(_line_ends(action.content))
    if action.role != "edit_file" or not action.old:
        return frozenset()
    fitting = [old for old in _line_ends(action.old) if old in text]
    if not action.new and fitting:  # a deleted line may leave an empty one: some forms of an edit are lines
        fitting = [*fitting, *(old.rstrip("\r\n") for old in fitting)]
    news = _line_ends(action.new) if "\r\n" in text else (action.new,)
    return frozenset(text.replace(old, new, count) for old in fitting for new in news for count in (1, -1))


def _line_ends(lines: str) -> tuple[str, str]:
    """Lines as they are, and with the line ends of Windows."""
    return lines, lines.replace("\r\n", "\n").replace("\n", "\r\n")


def loosely(text: str) -> str:
    r"""A text without its byte order mark, the empty lines at its end, and the encoding of its characters.

    A byte that is no UTF-8 is taken for the character of its number, as in Latin-1.

    >>> loosely("\ufeffcaf\\xe9\r\n") == loosely("café")
    True
    """
    return _BYTE.sub(lambda byte: chr(int(byte[1], 16)), text.removeprefix(BYTE_ORDER_MARK).rstrip())


def has_bytes(text: str) -> bool:
    r"""Whether a recorded text has bytes that are no UTF-8, each of which is written as `\xff`.

    >>> has_bytes("caf\\xe9"), has_bytes("café")
    (True, False)
    """
    return _NO_UTF_8.search(text) is not None


def file_changes(history: History) -> Iterator[FileChange]:
    """What became of each file in each turn, where that can be known: no other tool ran, and nothing was killed."""
    looks, late = list(history.of(FilesSeen)), dict[str, list[ToolUse]]()
    for earlier, before, after in zip([None, *looks], looks, looks[1:], strict=False):
        if after.by_user:
            late = {path: uses for path, uses in late.items() if path not in after.by_user}
            continue
        uses = [use for use in history.tool_uses if before.id < use.reply.id < after.id]
        known = not (any(use.offered.file is None for use in uses) or _killed(history, before.id, after.id))
        left = {it.path: it for it in earlier.files} if earlier is not None and before.by_user else {}
        for old, now in zip(before.files, after.files, strict=True):
            mine = [use for use in uses if _changes(use, now.path)]
            still = [*late.get(now.path, []), *_through_links(uses, now.path, before)]
            whole = _once(use for use in mine if use.offered.whole)
            halves = _once(use for use in mine if not use.offered.whole)
            still = still if len(whole) + len(still) <= MOST_CALLS else []
            change = FileChange(after.turn, old, now, after, whole, halves, left.get(now.path), still)
            if known and len(whole) <= MOST_CALLS:
                yield change
            done = known and change.changed
            late[now.path] = [use for use in (*still, *whole) if not done or not change.has_effect(use)]


def _killed(history: History, first: int, last: int) -> bool:
    return any(turn.killed is not None and first < turn.killed.id < last for turn in history.turns)


def _through_links(uses: Sequence[ToolUse], path: str, before: FilesSeen) -> list[ToolUse]:
    """Calls that change another path of the same file: the link to it, or the file behind the link."""
    ends = {it.path: it.link_to or it.path for it in before.files}
    end = ends.get(path, path)
    same = [other for other, its_end in ends.items() if its_end == end and other != path]
    return _once(use for use in uses if use.offered.whole and any(_changes(use, other) for other in same))


def _changes(use: ToolUse, path: str) -> bool:
    action = use.offered.file
    return action is not None and action.role in ("write_file", "edit_file") and action.path == path


def _once(uses: Iterable[ToolUse]) -> list[ToolUse]:
    """Each call once: a step that was asked for again offers it again."""
    return list({use.token: use for use in uses}.values())
