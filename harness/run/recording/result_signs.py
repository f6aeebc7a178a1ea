"""What the text of a tool's result says of itself, so that a history knows it without the text."""

import re
from collections.abc import Mapping
from functools import lru_cache

from wedgehog.fake_llm.script.roles import SILENT_COMMANDS

_SCANNED = 20_000
"""Characters at the beginning and at the end in which signs are looked for: a mark may stand where a middle was cut."""
_TOKEN = re.compile(r"\b\w*\d+x\d+x\d+(?:a\d+)?")
SIGNS: Mapping[str, str] = {
    "failed": r"fail|\berr|errno|exit|status|\bcode|\brc\b|return|exception|traceback|abort|unsuccess|problem|wrong"
    r"|denied|invalid|unable|cannot|\bnot\b|n't\b|no answer|no response|no reply|no result|nonzero|non-zero|crash"
    r"|reject|refus|unavailable|overload|incomplete|interrupt|cancel|kill|signal|time|stopp|terminat|fatal|warn|limit"
    r"|gave up|lost",
    "stopped": r"time.?out|timed|time.?limit|deadline|stopp|kill|terminat|interrupt|cancel|abort|exceed|expired",
    "elsewhere": r"background|running|continu|\bpid\b|process|\bjob\b|\bjobs\b|spawn|session|\bid\b|saved|written"
    r"|stored|\blog\b|\blogs\b|file\b|files\b|/|poll|later|pending|wait|binary",
    "part": r"...|[|(|<|{|*|--|==|trunc|\bcut|clip|shorten|omit|left out|skip|elid|more|limit|max|first|last|remain"
    r"|rest|total|part|large|long|\bbig|summar|byte|char|line|token|output|full|head|tail|begin|only",
    "undone": r"\bmust\b|have to|has to|you need to|needs to|please|unchanged|no change|no match|no edit|no replace"
    r"|no occurrence|mismatch|missing|nothing|already|instead|stale|conflict|before edit|before writ|\b0 \b|zero ",
    "cut_off": r"trunc|\bcut|token|length|limit|too long|too large|too big|incomplete|unterminated|unclosed"
    r"|unexpected end|end of|\beof\b|unfinish|not finish|partial|premature|interrupt|shorter|smaller|split|chunk|pieces"
    r"|in parts|broke off|broken off",
    "mismatch": r"match|found|find|locat|exist|occur|contain|present|exact|differ|missing|unique|identical|\bold"
    r"|search|hunk|context|verbatim|\bnot in\b|nowhere|nothing|\b0 \b|zero|replac|appear|read|stale|changed",
    "several": r"occurren|matches|multiple|several|more than once|twice|times|unique|ambig|first|\ball\b|\bevery|both"
    r"|places",
}
r"""Words by which a text may say it, in families. They are wide on purpose: an agent with one of them is not blamed.

`failed`: the tool or its command failed. `stopped`: it was ended early. `elsewhere`: it still runs, or its output is in
another place or is no text. `part`: a part of the output is missing. `undone`: a file was not changed, or something
else comes before that. `cut_off`: a call did not come whole. `mismatch`: a text is not in a file. `several`: a text
stands at more than one place. `\b` is the edge of a word, and `.?` one character or none.
"""
_TYPESET = str.maketrans("\u2018\u2019\u201c\u201d\u2013\u2014", "''\"\"--")
"""Quotes and dashes of a text that is set well are no other language."""
_RUNNING_NO_MORE = re.compile(r"\b(error|errors|exception|failed|while|when|after|before) running\b")
"""The word does not say that a tool still runs where an error came "while running the tool"."""
_NUMBER = re.compile(r"(?<![0-9A-Za-z.])\d{1,3}(?![0-9A-Za-z.])")
"""Perhaps an exit code or a status."""
_PATH = re.compile(r"(?<![\w/])/(?:[\w.@+~-]+/)+[\w.@+~-]*")
"""A number in the name of a file or a folder is neither."""
_HOLLOW = re.compile(r"<([a-z][\w-]*)>\s*</\1>")
"""As in `<task_result></task_result>`."""
_ONLY_OF_SUCCESS = re.compile(
    r"a|an|and|any|bash|been|call|captured|cmd|code|command|commands|complete|completed|content|did"
    r"|done|duration|empty|ended|executed|execution|exit|exitcode|exited|finished|for|generated|had"
    r"|has|have|in|is|it|message|no|none|not|nothing|null|of|ok|okay|output|print|printed|process"
    r"|produced|program|ran|rc|result|return|returncode|returned|script|shell|status|stderr|stdout"
    r"|success|succeeded|successful|successfully|system|text|the|there|time|tool|took|true|type|was"
    r"|were|with|without"
    r"|0|0\.0"
)
"""Words of a text that says that a command worked, or printed nothing, and no more than that."""
_DURATION = re.compile(r"\b\d+(?:\.\d+)? ?(?:ms|milliseconds?|s|secs?|seconds?)\b")
_NO_ERROR = re.compile(r"""\bno errors?\b|\berrors?\b['"]?[:=] ?(?:null|none|false|"")""")
_EMPTY_END = re.compile(r"\b(?:output|stdout):\s*$|<(output|stdout)>\s*</\1>\s*$")
"""A heading with nothing below it."""
_ELSEWHERE = re.compile(r"background|running|session|saved|written|stored|\blogs?\b|\bfiles?\b|poll|later|trunc|binary")
_SUCCESS = re.compile(r"\bsuccess|\bsucceed|\bcompleted\b")
_NO_SUCCESS = re.compile(
    r"fail|err|exception|abort|unsuccess|problem|wrong|denied|invalid|unable|cannot|\bnot\b|n't\b|false|crash|reject"
    r"|refus|unavail|overload|incomplete|partial|interrupt|cancel|kill|signal|timed|time.?out|stopp|terminat|fatal|warn"
    r"|limit|gave up|lost|skip|\b[45]\d\d\b"
)
"""Beside such a word a success is not all that is said. That there is no output is no word of a failure."""
_FAILED = re.compile(
    r"^\W*(?:tool )?(?:error|failed|failure|exception)\b|\bfailed to\b|\bcould ?n[o']t\b|\bunable to\b|\brejected\b"
    r"|\bnot (?:found|applied|modified|changed|edited|written|updated)\b|\bno changes?\b"
)
"""Words of a file tool that has done nothing."""
_DONE = re.compile(
    r"(?<!not )(?<!not been )\b(?:applied|modified|changed|edited|written|updated|wrote|saved|replaced|created)\b"
    r"|success|warn|lint|format|diagnos|however|\bbut\b|partial|some|already|reverted|undone"
)
"""Beside such a word it may tell of a part that worked, or of what came after it."""
_WAS_STOPPED = re.compile(
    r"(?:\b(?:was|been|got) (?:stopped|killed|terminated|interrupted|cancell?ed|aborted)"
    r"|(?<!not )(?<!never )(?<!have )\btimed out)\b(?!['\"]? ?[:=>])"
)
"""A claim that a command was ended early; neither a field of a frame (`"timed out": false`) nor a denial."""
_NEVER_RAN = re.compile(
    r"(?:\b(?:was|were|is|has|been) (?:not|never) (?:been )?(?:executed|run|started|invoked|performed)"
    r"|\b(?:did not|didn't|never) (?:run|ran|execute|executed|start|started|begin|began)"
    r"|\b(?:tool use|tool call|tool|command|call) (?:was )?(?:rejected|declined|denied|refused|skipped)"
    r"|\buser (?:has )?(?:rejected|declined|denied|refused)|\b(?:rejected|declined|denied|refused) by (?:the )?user"
    r"|\bdoesn't want to proceed)\b(?! (?:to|until|success|complete|full|in full))"
)
_PERHAPS = re.compile(r"\b(?:may|might|could have|whether|unknown|unclear|uncertain|unsure|possibly|perhaps|part)")
"""Beside such a word it makes no claim."""
_FRAME_OF_SUCCESS = re.compile(
    r"""\b(?:process )?(?:exit(?:ed)?|return)(?: with)?[ _]?(?:code|status)?['"]?[>:= ]*0(?![0-9.])(?:</\w+>)?"""
    r"""|\b(?:(?:wall|elapsed|total)[ _]?)?(?:time|duration)(?:_\w+)?['"]? ?[:=] ?\d+(?:\.\d+)?"""
    r"""(?: ?(?:ms|s|secs?|\w*seconds?)\b)?"""
)
"""What a program adds to the words of its tool: an exit code of 0, and how long it took."""
_FIRST_COMMAND = re.compile(
    r"(?<=[{(] )(?:echo (?P<words>[A-Za-z][A-Za-z ]*)|seq (?P<low>\d+)(?: (?P<high>\d+))?)(?=\\n|;)"
)
"""The command that a scripted one begins with, in the JSON text of a tool call's arguments."""
_ANSWERED = re.compile(
    r"\buser (has |have )?(answer|respond|repl(y|ied)|select|chose|pick|confirm|approv|said|wants)"
    r"|\busers? (has |have )?provided|\buser'?s? (answer|response|choice|reply)|answered your"
)
_UNANSWERED = re.compile(
    r"\bno (user|one|human|answer|response|reply|input)|nobody|non-?interactive|headless|unanswer|declin|skip|dismiss"
    r"|default|assum|\bnot\b|n't\b|cannot|unavailable|without|empty|time|fail|error|cancel|abort|wait|next message"
    r"|will |later|pending"
)
_NUMBERS = 3
_SHORT = 300
_OF_ARGUMENTS = re.compile(
    r"command|cmd|script|require|missing|expect|type|string|\btext|schema|propert|field|number|integer|\bint\b|\bstr\b"
    r"|\bfloat|object|must be|should be|not found|wqbcd|\d+x\d+x\d+"
)
"""Names of the parameter, words for what a value is and for what it should be, or the output of a command that ran."""
_SILENT = re.compile(r"[{(] (?:" + "|".join(sorted(SILENT_COMMANDS)) + r")(?:\\n|\n|;| )+[})]")
"""A scripted command that prints nothing, in the same text."""


def signs_in(text: str) -> tuple[str, ...]:
    """The families of signs that a result's text has.

    >>> signs_in("half done\\nwqbcd1x1x1\\n[exit code 7]")
    ('failed', 'number', 'part')
    >>> signs_in("half done\\nwqbcd1x1x1\\n")
    ()
    """
    ends = text if len(text) <= 2 * _SCANNED else f"{text[:_SCANNED]}\n{text[-_SCANNED:]}"
    return _signs(ends)


@lru_cache(maxsize=512)
def _signs(text: str) -> tuple[str, ...]:
    """The same. Each request of a turn carries the results of the ones before again."""
    parts = _TOKEN.split(text)
    said = "".join(parts).lower().translate(_TYPESET)
    if " running" in said:
        said = _RUNNING_NO_MORE.sub(r"\1", said)
    lines = _without_numbers_alone(said)
    found = {name: any(_has(lines, *word) for word in words) for name, words in _WORDS.items()}
    numbers = _PATH.sub(" ", said) if "/" in said else said
    found |= {"number": _NUMBER.search(numbers) is not None, "foreign": not said.isascii()}
    found["hollow"] = _HOLLOW.search(said) is not None
    found["bare"] = len(said) <= _SHORT and said.isascii() and _says_only_that_it_worked(said)
    found["answered"] = _finds(_ANSWERED, said) and _UNANSWERED.search(said) is None
    found["success"] = _finds(_SUCCESS, said) and _NO_SUCCESS.search(said) is None
    found["only_failed"] = _finds(_FAILED, said) and _DONE.search(said) is None
    found["ended_well"] = _has_only_the_frame_of_success(said)
    found["never_ran"] = _NEVER_RAN.search(said) is not None and _PERHAPS.search(said) is None
    # The agent's words for an early end stand behind the token, the last that a command prints.
    found["was_stopped"] = len(parts) > 1 and _finds(_WAS_STOPPED, parts[-1].lower())
    return tuple(name for name in _ORDER if found[name])


def _without_numbers_alone(said: str) -> str:
    """Leave out lines that are only a number: no word of `_WORDS` stands in such a line, or reaches across it."""
    return "\n".join(line for line in said.split("\n") if not line.isdigit())


def _finds(pattern: re.Pattern[str], said: str) -> bool:
    """Whether a pattern matches. One of its literal parts is found quicker, and most texts have none."""
    return any(part in said for part in _PARTS[pattern]) and pattern.search(said) is not None


_PARTS = {
    _ANSWERED: ("user", "answered your"),
    _SUCCESS: ("success", "succeed", "completed"),
    _FAILED: ("error", "fail", "exception", "could", "unable to", "rejected", "not ", "no change"),
    _WAS_STOPPED: ("was ", "been ", "got ", "timed out"),
    _FRAME_OF_SUCCESS: ("exit", "return", "time", "duration"),
}
"""By pattern, parts of which each match has one."""


def _has_only_the_frame_of_success(said: str) -> bool:
    if not _finds(_FRAME_OF_SUCCESS, said):
        return False
    rest = _FRAME_OF_SUCCESS.sub(" ", said)
    words = (*_WORDS["failed"], *_WORDS["undone"])
    return rest != said and _NUMBER.search(rest) is None and not any(_has(rest, *word) for word in words)


def _says_only_that_it_worked(said: str) -> bool:
    if _EMPTY_END.search(said) and not _ELSEWHERE.search(said):
        return True
    words = re.findall(r"[a-z]+|\d+(?:\.\d+)?", _NO_ERROR.sub(" ", _DURATION.sub(" ", said)))
    return bool(words) and all(map(_ONLY_OF_SUCCESS.fullmatch, words))


def _has(said: str, part: str, whole: re.Pattern[str] | None) -> bool:
    """Whether a text has a word. Its longest part is found quickest."""
    return part in said and (whole is None or whole.search(said) is not None)


def _word(written: str) -> tuple[str, re.Pattern[str] | None]:
    """The longest part of a word in `SIGNS`, and the whole word where this is more."""
    part = max(re.split(r"\\b|\.\?", written), key=len)
    return part, None if part == written else re.compile(written)


_WORDS = {name: tuple(map(_word, words.split("|"))) for name, words in SIGNS.items()}
_ORDER = (
    "failed",
    "number",
    "stopped",
    "elsewhere",
    "part",
    "undone",
    "cut_off",
    "mismatch",
    "several",
    "foreign",
    "hollow",
    "bare",
    "answered",
    "success",
    "only_failed",
    "ended_well",
    "was_stopped",
    "never_ran",
)
"""`foreign`: a character that is not ASCII, so perhaps a sign or another language. `hollow`: a frame of nothing.
`bare`: no word but that a command worked, or that it printed nothing; or a heading of the output with nothing below.
`answered`: it says that the user has answered a question, and nothing that would take that back. `success`:
it says that all went well, and no word of it says anything else. `only_failed`: it says that it failed, and no word of
it that something was done. `ended_well`: its numbers and its words of a failure are those of an exit code of 0 and of a
duration. `was_stopped`: behind the output it says that the command was ended early. `never_ran`: it says
that the call was rejected or did not run, and no word of it leaves that open."""


def prints_first(arguments: str) -> str:
    r"""What a scripted command is known to print first, by the arguments of its tool call; else empty.

    >>> prints_first('{"command": "printf \'1.1.1 started\\\\n\' >> x\\n{ echo started; sleep 600\\n}"}')
    'started'
    >>> prints_first('{"command": "{ seq 1 80000\\n}"}')
    '1\n2\n3'
    """
    found = _FIRST_COMMAND.search(arguments)
    if found is None:
        return ""
    if found["words"]:
        return found["words"].strip()
    low, high = (int(found["low"]), int(found["high"])) if found["high"] else (1, int(found["low"]))
    return "\n".join(str(number) for number in range(low, min(high + 1, low + _NUMBERS)))


def is_silent(arguments: str) -> bool:
    r"""Whether a scripted command prints nothing at all, by the arguments of its tool call.

    >>> is_silent('{"command": "printf \'1.1.1 started\\\\n\' >> x\\n{ true\\n}"}')
    True
    """
    return _SILENT.search(arguments) is not None


def has_first(text: str, first: str) -> bool | None:
    """Whether a text has what its command prints first, whatever the ends of its lines are; None if that is unknown."""
    return " ".join(first.split()) in " ".join(text[:_SCANNED].split()) if first else None


def names_arguments(text: str) -> bool:
    """Whether a text may name what is wrong with the arguments of a call of a shell; a long one may hold anything.

    >>> names_arguments("The parameter `command` type is expected as `string`"), names_arguments("Error: invalid input")
    (True, False)
    """
    return len(text) > _SHORT or not text.isascii() or _OF_ARGUMENTS.search(text.lower()) is not None


def shells_words(text: str) -> str:
    """The words by which a shell says that its command breaks off in the middle; else empty.

    >>> shells_words("sh: 1: Syntax error: Unterminated quoted string")
    'Syntax error: Unterminated quoted string'
    """
    found = _BROKEN_OFF.search(text[:_SCANNED])
    return found.group(0) if found else ""


_BROKEN_OFF = re.compile(
    r"Syntax error: (Unterminated quoted string|EOF in backquote substitution|end of file unexpected)"
    r"|unexpected EOF while looking for matching|syntax error: unexpected end of file|zsh:\d+: unmatched"
)
"""Of dash, bash and zsh."""
