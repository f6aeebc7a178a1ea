"""A failure reaches the agent's user as an error message."""

from collections.abc import Iterator

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import ends, requests
from wedgehog.harness.record.history import History
from wedgehog.harness.record.turn_outcome import outcome_of
from wedgehog.harness.record.verdict import Verdict, fail, inconclusive, passed


@invariant("error_surfaced")
def error_surfaced(history: History) -> Iterator[Verdict]:
    """A turn that is not answered ends in an error that its user can see; an exit code without a message is none.

    `turn_deadline` judges silence until the deadline, `truncation_noticed` a cut reply shown as if whole. An agent that
    stops at a limit of its own, while the model asks for one more tool, may say so in words of any kind. Only words
    that claim that the work is done, such as "Task completed", and name no limit are red.

    Fix: End each failed turn with one line for the user that says what failed. Catch errors where the turn ends,
    not only around the request. If the agent does say it in words that are not recognized, add them to `errors:` in
    the spec.
    """
    for turn in history.turns:
        outcome = outcome_of(turn, history)
        if outcome.kind == "hidden":
            says = f"{turn}: {outcome.how}"
            evidence = (*requests(call for call in turn.main_calls if not call.ok), *ends(turn))
            if history.run.carries_nonces:
                yield fail(says, evidence)
            else:
                yield inconclusive(f"{says}; in its control run not each answer carried the model's words", evidence)
        elif outcome.seen:
            remark = f"{turn}: {outcome.remark}" if outcome.kind == "surfaced" and outcome.remark else ""
            shown = f" in an error that its user sees: {outcome.how}" if outcome.kind == "surfaced" else ""
            yield passed(remark, because=f"{turn} ended{shown}" if shown else f"{turn}: {outcome.kind}")
