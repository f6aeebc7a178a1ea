"""openai, the Responses API."""

import sys

import openai
import telling

client = openai.OpenAI(base_url=f"{telling.url()}/v1", api_key="k", max_retries=0)
TOOLS = [{"type": "function", "name": "get_weather", "parameters": telling.CITY, "strict": False}]
MORE = ("second turn by id", "an unknown earlier response", "kept")


def create(given, stream, **more):
    return client.responses.create(model=telling.MODEL, input=given, tools=TOOLS, stream=stream, **more)


def ask(said, stream, **more):
    return gathered(create(said, True, **more)) if stream else told(create(said, False, **more))


def told(response):
    calls = [[item.call_id, item.name, item.arguments] for item in response.output if item.type == "function_call"]
    usage = [response.usage.input_tokens, response.usage.output_tokens]
    return {"text": response.output_text, "calls": calls, "stop": response.status, "usage": usage}


def gathered(events):
    pieces, arguments, numbers = [], {}, []
    for event in events:
        numbers.append(event.sequence_number)
        if event.type == "response.output_text.delta":
            pieces.append(event.delta)
        elif event.type == "response.function_call_arguments.delta":
            arguments[event.item_id] = arguments.get(event.item_id, "") + event.delta
        elif event.type == "response.completed":
            final = event.response
    assert numbers == list(range(len(numbers))), numbers
    assert list(arguments.values()) == [item.arguments for item in final.output if item.type == "function_call"]
    return {**told(final), "pieces": pieces}


def results(response):
    calls = [item for item in response.output if item.type == "function_call"]
    return [
        {"type": "function_call_output", "call_id": call.call_id, "output": telling.RESULTS["call"]} for call in calls
    ]


def second_turn(stream):
    first = create("tools", False)
    said = [item.model_dump(exclude_none=True) for item in first.output]
    return ask([{"role": "user", "content": "tools"}, *said, *results(first)], stream)


def second_turn_by_id():
    first = create("tools", False)
    return ask(results(first), True, previous_response_id=first.id)


def fail(said, stream):
    try:
        ask(said, stream)
    except openai.APIStatusError as raised:
        message = raised.body["message"]
        return telling.error(raised, raised.status_code, message, raised.response.headers.get("retry-after"))


def an_unknown_earlier_response():
    try:
        ask("text", False, previous_response_id="resp_0")
    except openai.BadRequestError as raised:
        return telling.error(raised, raised.status_code, raised.body["message"])


def kept():
    first = create("text", False)
    read = client.responses.retrieve(first.id)
    (given,) = client.responses.input_items.list(first.id).data
    client.responses.delete(first.id)
    try:
        client.responses.retrieve(first.id)
    except openai.NotFoundError:
        return [read.output_text == first.output_text, given.role, "gone"]


def models():
    return [model.id for model in client.models.list()]


telling.tell(sys.modules[__name__])
