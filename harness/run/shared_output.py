"""A remark about turns of two sessions in one process, whose output cannot be told apart."""

from collections.abc import Iterator

from wedgehog.harness.record.history import History


def shared_output_remarks(history: History) -> Iterator[str]:
    """One sentence if a process printed something while turns of two sessions ran in it."""
    shared = [turn for turn in history.turns if turn.end is not None and turn.end.shared and turn.end.stderr.strip()]
    if shared:
        yield (
            f"{', '.join(map(str, shared))}: turns of two sessions ran in one process: a line on its stderr counts as "
            "said in each of them, and a stack in none"
        )
