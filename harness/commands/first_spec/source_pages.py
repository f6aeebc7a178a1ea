"""A program that makes a page for a chat, by the library that it imports."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class PageLibrary:
    """How a library's pages are served, and where its user looks."""

    chats: re.Pattern[str]
    """What a source has that makes a chat."""
    start: str
    keys: Mapping[str, object]
    """The keys of `page` beside `start`."""


_LIBRARIES: Final = (
    PageLibrary(
        re.compile(r"^\s*(?:from|import)\s+streamlit\b[\s\S]*\bchat_input\(", re.MULTILINE),
        "python -m streamlit run {file} --server.port {{port}} --server.headless true",
        {
            "answer": '[aria-label="Chat message from assistant"]',
            "busy": '[data-test-script-state="running"]',
            "stop": '[data-testid="stStatusWidget"] button',
        },
    ),
    PageLibrary(
        re.compile(r"^\s*(?:from|import)\s+gradio\b[\s\S]*\bChat(?:Interface|bot)\(", re.MULTILINE),
        "GRADIO_SERVER_PORT={{port}} python {file}",
        {"answer": '[data-testid="bot"]', "stop": '[data-testid="stop-button"]'},
    ),
    PageLibrary(
        re.compile(r"^\s*(?:from|import)\s+chainlit\b[\s\S]*\bon_message\b", re.MULTILINE),
        "python -m chainlit run {file} --headless --port {{port}}",
        {"answer": ".ai-message", "stop": "#stop-button"},
    ),
)


def page_of(text: str) -> PageLibrary | None:
    """The library whose page this source makes; None if it is no such program."""
    return next((library for library in _LIBRARIES if library.chats.search(text)), None)
