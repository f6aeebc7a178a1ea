"""`wedgehog export`: finished runs as traces, for Perfetto or OpenTelemetry."""

from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from wedgehog.harness.commands.console import RunArgument, err, user_mistakes

OPEN_IN = {"perfetto": "open it at https://ui.perfetto.dev", "otlp": "one ExportTraceServiceRequest in JSON"}


def export(
    folder: RunArgument,
    cells: Annotated[
        list[str] | None,
        typer.Argument(metavar="CELL", help="Only these runs: SCENARIO, or SCENARIO/AGENT as in the run folder."),
    ] = None,
    form: Annotated[
        Literal["perfetto", "otlp"],
        typer.Option(
            "--format",
            help="`perfetto`: Chrome trace events, each run a process. `otlp`: OpenTelemetry spans in JSON, each run "
            "a trace.",
        ),
    ] = "perfetto",
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A new file (default: trace.perfetto.json or trace.otlp.json in RUN, which is replaced).",
        ),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Send the spans to a collector by OTLP over HTTP: http://127.0.0.1:4318."),
    ] = None,
) -> None:
    """Export runs for Perfetto or OpenTelemetry.

    The trace holds what the timeline of report.html shows, and no body of a request or reply.
    """
    from wedgehog.reports.data.export import chosen, send, write_export

    with user_mistakes():
        if to is not None and form != "otlp":
            raise ValueError("--to: expected --format otlp too")
        if out is not None and out.exists():
            raise ValueError(f"{out}: exists already; it is not overwritten")
        found = chosen(folder, cells or (), partial(err.print, markup=False))
        if to is not None:
            err.print(f"sent {_many(send(found, to))} to {to}", markup=False)
            if out is None:
                return
            found = chosen(folder, cells or (), lambda line: None)
        target = out or folder / f"trace.{form}.json"
        err.print(f"wrote {target}: {_many(write_export(found, form, target))}; {OPEN_IN[form]}", markup=False)


def _many(runs: int) -> str:
    return f"{runs} run{'' if runs == 1 else 's'}"
