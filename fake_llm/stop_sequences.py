"""Stop sequences: a provider ends a reply's text before the first of those that the request names."""

from dataclasses import replace

from wedgehog.fake_llm.conversation import Conversation
from wedgehog.fake_llm.reply import Reply, Text


def before_stop(reply: Reply, conversation: Conversation) -> Reply:
    """Return what comes before the first stop sequence in a text of the reply; all of it if there is none.

    >>> asked = Conversation("ollama", "m", False, (), stops=("Observation:",))
    >>> before_stop(Reply((Text("Action: look. Observation: nothing."),)), asked).items[0].text
    'Action: look. '
    """
    for index, item in enumerate(reply.items if conversation.stops else ()):
        if not isinstance(item, Text):
            continue
        if found := [(at, stop) for stop in conversation.stops if (at := item.text.find(stop)) >= 0]:
            at, stop = min(found)
            said = (replace(item, text=item.text[:at]),) if at else ()
            usage = reply.usage and replace(reply.usage, output_tokens=None)
            return replace(reply, items=(*reply.items[:index], *said), usage=usage, stop=None, stop_sequence=stop)
    return reply
