"""Finished runs as one file for other tools, or sent to a collector: Chrome trace events, or OTLP/JSON."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from wedgehog.harness.record.files import ESCAPED, draft_of
from wedgehog.harness.record.store import StoredRun, check_run_folder, read_run, run_folders
from wedgehog.reports.data.otlp import resource_spans
from wedgehog.reports.data.perfetto import trace_events
from wedgehog.reports.words import one_line

Format = Literal["perfetto", "otlp"]
TRACES = "/v1/traces"
"""The path at which a collector takes traces by OTLP over HTTP."""
POST_S = 30.0
CELLS_SHOWN = 5
NOTHING = "no run to export: none of them was played"
_HEAD = {"perfetto": '{"displayTimeUnit":"ms","traceEvents":[', "otlp": '{"resourceSpans":['}


@dataclass(frozen=True)
class ExportedRun:
    """A finished run, and its folder relative to the campaign's."""

    name: str
    run: StoredRun
    trace: str
    """The name of its trace, with the campaign's folder."""


def chosen(folder: Path, names: Sequence[str], unread: Callable[[str], None]) -> Iterator[ExportedRun]:
    """The runs of a campaign, or the one of a run's folder, without those that were not played.

    `names` are the folders of runs or of scenarios below it; none: all. ValueError: there is no such run.
    `unread` is called with each run that can't be read.
    """
    check_run_folder(folder)
    found = {_name(path, folder): path for path in run_folders(folder)}
    if not found:
        raise ValueError(f"{folder}: no finished run in this folder")
    for name in names:
        if not any(_is_in(known, name) for known in found):
            raise ValueError(_no_such(folder, name, list(found)))
    wanted = {known: path for known, path in found.items() if not names or any(_is_in(known, it) for it in names)}
    return _read(wanted, folder, unread)


def _read(wanted: dict[str, Path], folder: Path, unread: Callable[[str], None]) -> Iterator[ExportedRun]:
    for name, path in wanted.items():
        try:
            run = read_run(path)
        except (ValueError, OSError) as wrong:
            unread(str(wrong))
            continue
        if run.history.events:
            yield ExportedRun(name, run, _trace(path))


def _name(path: Path, folder: Path) -> str:
    """`scenario/agent`, also for the folder of a run."""
    return _last(path, 2) if path == folder else path.relative_to(folder).as_posix()


def _trace(path: Path) -> str:
    """`campaign/scenario/agent`: what names a run in a trace, whichever folder was given."""
    return _last(path, 3)


def _last(path: Path, parts: int) -> str:
    return "/".join(path.resolve().parts[-parts:])


def _is_in(known: str, name: str) -> bool:
    return f"{known}/".startswith(f"{name.strip('/')}/")


def _no_such(folder: Path, name: str, known: Sequence[str]) -> str:
    near = get_close_matches(name, [*known, *{it.partition("/")[0] for it in known}], 1)
    if near:
        return f"{folder}: no run {name!r} (did you mean {near[0]!r}?)"
    more = f" and {len(known) - CELLS_SHOWN} more" if len(known) > CELLS_SHOWN else ""
    return (
        f"{folder}: no run {name!r}; expected SCENARIO or SCENARIO/AGENT, as in {', '.join(known[:CELLS_SHOWN])}{more}"
    )


def write_export(cells: Iterable[ExportedRun], form: Format, out: Path) -> int:
    """Write the file in one piece, and return the number of its runs. ValueError: there is none."""
    if not out.parent.is_dir():
        raise ValueError(f"{out.parent}: no such folder")
    runs = 0
    with draft_of(out) as draft, draft.open("w", encoding="utf-8", errors=ESCAPED) as target:
        target.write(_HEAD[form])
        for runs, cell in enumerate(cells, start=1):
            target.write(",\n" if runs > 1 else "\n")
            target.write(",\n".join(map(_json, _parts(cell, form, runs))))
        target.write("\n]}\n")
        if not runs:
            raise ValueError(NOTHING)
    return runs


def send(cells: Iterable[ExportedRun], collector: str) -> int:
    """Send each run to a collector by OTLP over HTTP, and return their number. ValueError: it does not take them."""
    address = traces_address(collector)
    runs = 0
    for runs, cell in enumerate(cells, start=1):
        _post(address, _json({"resourceSpans": list(_parts(cell, "otlp", runs))}).encode("utf-8", ESCAPED))
    if not runs:
        raise ValueError(NOTHING)
    return runs


def traces_address(collector: str) -> str:
    """The full address for traces. ValueError: it is no address."""
    parts = urlsplit(collector)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"--to {collector}: expected the address of a collector, as http://127.0.0.1:4318")
    return collector if parts.path.endswith(TRACES) else collector.rstrip("/") + TRACES


def _post(address: str, body: bytes) -> None:
    import requests

    try:
        reply = requests.post(address, body, headers={"content-type": "application/json"}, timeout=POST_S)
    except requests.RequestException as wrong:
        raise ValueError(f"{address}: nothing took the traces there: {type(wrong).__name__}") from None
    if not reply.ok:
        raise ValueError(f"{address}: refused with {reply.status_code}: {one_line(reply.text, 200)}")
    if refused := _refused_spans(reply.content):
        raise ValueError(f"{address}: {refused}")


def _refused_spans(body: bytes) -> str:
    """How many spans a collector refused, and why (OTLP's `partialSuccess`); empty if it took all of them."""
    try:
        said = json.loads(body)["partialSuccess"]
        number = int(said.get("rejectedSpans", 0))
    except (ValueError, TypeError, KeyError, AttributeError):
        return ""
    return f"{number} spans were refused: {one_line(str(said.get('errorMessage', '')), 200)}" if number else ""


def _parts(cell: ExportedRun, form: Format, number: int) -> Iterator[dict[str, Any]]:
    if form == "otlp":
        yield resource_spans(cell.run, cell.trace)
    else:
        yield from trace_events(cell.run, number, cell.name)


def _json(data: dict[str, Any]) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))
