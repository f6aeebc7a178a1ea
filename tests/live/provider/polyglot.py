"""A small agent that speaks all five wire formats: `polyglot.py WIRE URL MESSAGE`, with `forget` it loses results.

With `lenient` a missing list is an empty one.

Standard library only; each wire is what it says, what it understands, and how results go back.
"""

import json
import sys
from typing import ClassVar

from plain_http import StatusError, post

COMMAND = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}


class Chat:
    path = "/v1/chat/completions"
    headers: ClassVar = {"authorization": "Bearer k"}
    tool: ClassVar = {"type": "function", "function": {"name": "bash", "parameters": COMMAND}}

    def user(self, text):
        return {"role": "user", "content": text}

    def body(self, history):
        return {"model": "m", "messages": history, "tools": [self.tool]}

    def read(self, reply):
        message = reply["choices"][0]["message"]
        calls = [(c["id"], json.loads(c["function"]["arguments"])["command"]) for c in message.get("tool_calls", [])]
        return message["content"] or "", calls, [message]

    def results(self, done):
        return [{"role": "tool", "tool_call_id": id_, "content": text} for id_, text in done]


class Responses(Chat):
    path = "/v1/responses"
    tool: ClassVar = {"type": "function", "name": "bash", "parameters": COMMAND}

    def body(self, history):
        return {"model": "m", "input": history, "tools": [self.tool]}

    def read(self, reply):
        texts = [part["text"] for item in reply["output"] if item["type"] == "message" for part in item["content"]]
        called = [item for item in reply["output"] if item["type"] == "function_call"]
        return "".join(texts), [(c["call_id"], json.loads(c["arguments"])["command"]) for c in called], reply["output"]

    def results(self, done):
        return [{"type": "function_call_output", "call_id": id_, "output": text} for id_, text in done]


class Messages(Chat):
    path = "/v1/messages"
    headers: ClassVar = {"x-api-key": "k", "anthropic-version": "2023-06-01"}
    tool: ClassVar = {"name": "bash", "input_schema": COMMAND}

    def body(self, history):
        return super().body(history) | {"max_tokens": 999}

    def read(self, reply):
        texts = [block["text"] for block in reply["content"] if block["type"] == "text"]
        calls = [(block["id"], block["input"]["command"]) for block in reply["content"] if block["type"] == "tool_use"]
        return "".join(texts), calls, [{"role": "assistant", "content": reply["content"]}]

    def results(self, done):
        content = [{"type": "tool_result", "tool_use_id": id_, "content": text} for id_, text in done]
        return [{"role": "user", "content": content}]


class Gemini:
    path = "/v1beta/models/m:generateContent"
    headers: ClassVar = {"x-goog-api-key": "k"}

    def user(self, text):
        return {"role": "user", "parts": [{"text": text}]}

    def body(self, history):
        tools = [{"functionDeclarations": [{"name": "bash", "parameters": COMMAND}]}]
        return {"contents": history, "tools": tools}

    def read(self, reply):
        content = reply["candidates"][0]["content"]
        if "lenient" in sys.argv:
            content = {"parts": []} | content
        texts = [part["text"] for part in content["parts"] if "text" in part]
        called = [part["functionCall"] for part in content["parts"] if "functionCall" in part]
        return "".join(texts), [(call.get("id"), call["args"]["command"]) for call in called], [content]

    def results(self, done):
        told = [{"id": id_, "name": "bash", "response": {"output": text}} for id_, text in done]
        return [{"role": "user", "parts": [{"functionResponse": one} for one in told]}]


class Ollama(Chat):
    path = "/api/chat"
    headers: ClassVar = {}

    def body(self, history):
        return super().body(history) | {"stream": False}

    def read(self, reply):
        message = reply["message"]
        calls = [(None, call["function"]["arguments"]["command"]) for call in message.get("tool_calls", [])]
        return message["content"], calls, [message]

    def results(self, done):
        return [{"role": "tool", "tool_name": "bash", "content": text} for _, text in done]


WIRES = {
    "openai-chat": Chat(),
    "openai-responses": Responses(),
    "anthropic": Messages(),
    "gemini": Gemini(),
    "ollama": Ollama(),
}


def run(command):
    import subprocess

    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def answer(wire, url, message, forgets):
    history = [wire.user(message)]
    while True:
        reply = post(url + wire.path, wire.body(history), wire.headers, timeout_s=30)
        text, calls, said = wire.read(json.loads(reply.read()))
        if not calls:
            return text
        done = [(id_, run(command)) for id_, command in calls]
        history += [*said, *([wire.user("Well?")] if forgets else wire.results(done))]


if __name__ == "__main__":
    try:
        print(answer(WIRES[sys.argv[1]], sys.argv[2], sys.argv[3], "forget" in sys.argv))
    except StatusError as wrong:
        sys.exit(f"Error: {wrong.body.decode()}")
    except (OSError, KeyError) as wrong:
        sys.exit(f"Error: {wrong!r}")
