"""What the words of the page mean, folded."""

from wedgehog.reports.markup import Markup, tag

WORDS = {
    "answered": "the user got the whole answer.",
    "surfaced": "no answer, but an error that the user could see.",
    "silent": "no answer and no error until the deadline.",
    "hidden": "no answer, and no word of an error: the turn ended with nothing, or with other words.",
    "truncated": "a part of a reply was shown as if it were whole.",
    "stopped by its user": "aborted, or its front end gave up.",
    "lost call": "the provider accepted it, and its reply did not arrive whole.",
    "paid": "the provider accepted the request, so it is billed, whatever arrived.",
    "continuation": "the request that carries the results of tool calls back to the model.",
    "recovery message": "one more message, after all faults are removed, to see whether the agent still works. "
    "Only numbers that name it count it.",
    "N allowed": "the bound of the invariant, by the scenario, by the agent's own spec or the stock one.",
    "1.2.3": "turn 1, step 2 (a step for each round of tool calls), attempt 3; of a tool call its number in the reply.",
}


def legend() -> Markup:
    """A list that is folded."""
    items = [tag("div", tag("dt", word), tag("dd", meaning)) for word, meaning in WORDS.items()]
    return tag("details", tag("summary", "What the words mean"), tag("dl", items, class_="stack"), class_="more screen")
