"""What mkdocs does beside its own work: the site holds the repository's own pages, and their links work there.

The README is the first page. A page may link to a file outside docs/, such as `../harness/record/event.py`:
then the site holds a copy of that file.
"""

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import get_plugin_logger
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

log = get_plugin_logger("wedgehog")
ROOT = Path(__file__).parents[1]
FIRST = {"README.md": "index.md", "CHANGELOG.md": "changelog.md"}
"""The site's places of the pages at the root of the repository."""
LINK = re.compile(r"(?<=\]\()(?!https?:)([^)#\s]+)")
"""The target of a relative link, without its anchor."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages at the root, and each file outside docs/ that a page links to."""
    pages = {f"docs/{file.src_uri}": file.content_string for file in files.documentation_pages()}
    pages |= {source: (ROOT / source).read_text(encoding="utf-8") for source in FIRST}
    linked = {_target(source, link) for source, text in pages.items() for link in LINK.findall(text)}
    for source in sorted(FIRST.keys() | {target for target in linked if not target.startswith("docs/")}):
        if not (ROOT / source).is_file():
            log.warning("a page links to %s, which is no file of the repository", source)
            continue
        files.append(File.generated(config, _place(source), abs_src_path=str(ROOT / source)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Make each link of a page lead to the site's place of its target."""
    source = str(Path(page.file.abs_src_path or "").relative_to(ROOT))
    here = posixpath.dirname(page.file.src_uri)
    return LINK.sub(lambda link: posixpath.relpath(_place(_target(source, link[1])), here or "."), markdown)


def _target(source: str, link: str) -> str:
    """The path from the root to what a link in the file `source` names."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(source), link))


def _place(source: str) -> str:
    """The path in the site of a file of the repository. A program ends with `.txt`, so that a browser shows it."""
    if source in FIRST:
        return FIRST[source]
    if source.startswith("docs/"):
        return source.removeprefix("docs/")
    return source if source.endswith(".md") else f"files/{source}.txt"
