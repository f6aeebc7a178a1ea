"""The words of a subagent in the background reach the model of its parent, and not only its end."""

from collections.abc import Iterator

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.subagents.background_subagents import background_subagents
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict, fail, passed


@invariant("subagent_words_told", level="strict")
def subagent_words_told(history: History) -> Iterator[Verdict]:
    """Word of the end of a subagent in the background has what the subagent said, or says where that is.

    A model that reads only that its subagent has ended cannot use what it was begun for. It waits, or has the work
    done and paid again. Judged where a subagent ended well, and a message that came a second or more later brought
    word of that, or its model asked for it. What it said is known by a word that stands nowhere else; where the script
    has no such word, nothing is judged. Its last words are enough, in a request, in a summary or in what the user
    read. So is the name of a file, of a folder or of a tool beside word of its end or in the result of the call that
    began it, and a tool that waits for subagents. `subagent_returns` judges where not even word of the end came.

    Fix: Put what a subagent said last beside the word of its end, or the name of a file that holds it.
    """
    for it in background_subagents(history):
        told = [request for request in it.chances if it.heard_in(request)]
        if it.how != "well" or not told or not it.is_known_by_a_word:
            continue
        if it.words_came or it.may_be_asked_for or any(request.notices_lead is not False for request in told):
            yield passed(because=f"the model reads what {it.name} said, or where that is")
        else:
            says = f"{it}; request {told[0].call} tells of the end, and no request has its words or says where they are"
            yield fail(says, (it.last.arrived, it.end, told[0]))
