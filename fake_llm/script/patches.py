"""Edits as text: a patch in the form of Codex, a unified diff, or a block that says what is searched and replaced."""

import re
from collections.abc import Callable
from typing import Final

from wedgehog.fake_llm.reply import FileAction

_SAYS_CODEX = re.compile(r"Begin Patch")
_SAYS_UNIFIED = re.compile(r"unified[ -]diff|unified format|git diff|git apply|diff -u|diff --git|(?m:^)@@ -", re.I)
_MARKS: Final = re.compile(
    r"(?P<search>[<-]{5,9} ?SEARCH)\b.*?(?P<middle>={5,9}).*?(?P<replace>[>+]{5,9} ?REPLACE)\b", re.S
)


def edit_form(description: str) -> Callable[[FileAction], str] | None:
    """How an edit is written for a tool that takes it beside the path of the file; None if its words do not say.

    >>> edit_form("Takes a unified diff.") is unified_diff, edit_form("Takes the new text.")
    (True, None)
    """
    if marks := _MARKS.search(description):
        return lambda action: _block(action, marks["search"], marks["middle"], marks["replace"])
    return unified_diff if _is_unified(description) else None


def patch_form(description: str) -> Callable[[FileAction], str]:
    """How a patch is written for a tool that takes patches of several files: as in Codex, if its words do not say."""
    return unified_diff if _is_unified(description) else codex_patch


def _is_unified(description: str) -> bool:
    return _SAYS_UNIFIED.search(description) is not None and _SAYS_CODEX.search(description) is None


def codex_patch(action: FileAction) -> str:
    r"""The action as a patch in the form that Codex and others take; the path is relative to the working folder.

    >>> print(codex_patch(FileAction("edit_file", "a.txt", old="one\n", new="two\n")))
    *** Begin Patch
    *** Update File: a.txt
    @@
    -one
    +two
    *** End Patch
    """
    if action.role == "write_file":
        body = [f"*** Add File: {action.path}", *(f"+{line}" for line in action.content.splitlines() or [""])]
    else:
        removed = [f"-{line}" for line in action.old.splitlines()]
        body = [f"*** Update File: {action.path}", "@@", *removed, *(f"+{line}" for line in action.new.splitlines())]
    return "\n".join(["*** Begin Patch", *body, "*** End Patch"])


def unified_diff(action: FileAction) -> str:
    r"""The action as a unified diff of whole lines, without lines around them.

    A model often errs in the number of the first line, so it is always 1, and tools look for the lines themselves.

    >>> print(unified_diff(FileAction("edit_file", "a.txt", old="one\n", new="two\n")), end="")
    --- a/a.txt
    +++ b/a.txt
    @@ -1,1 +1,1 @@
    -one
    +two
    """
    new_file = action.role == "write_file"
    old, new = action.old.splitlines(), (action.content if new_file else action.new).splitlines()
    head = [f"--- {'/dev/null' if new_file else 'a/' + action.path}", f"+++ b/{action.path}"]
    hunk = f"@@ -{0 if new_file else 1},{len(old)} +{1 if new else 0},{len(new)} @@"
    return "\n".join([*head, hunk, *(f"-{line}" for line in old), *(f"+{line}" for line in new), ""])


def _block(action: FileAction, search: str, middle: str, replace: str) -> str:
    """Whole lines that are searched, and those that come in their place."""
    return "\n".join([search, *action.old.splitlines(), middle, *action.new.splitlines(), replace, ""])
