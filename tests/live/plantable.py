"""A correct agent with a place for each of its bugs: `plantable.py BUG URL SESSION TOOL_URL MESSAGE`.

BUG is `none`, or names of bugs with a comma between them; real reports are about each of them. TOOL_URL may be `-`.
`model=NAME` among them is no bug, but the model that its user chooses, and `session=NAME` is the name of the session.
Anthropic's wire, streamed; its session is a file of lines.
"""

import asyncio
import json
import os
import pty
import re
import signal
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import aiohttp

IDLE_S, TOTAL_S, TOOL_S, TRIES, ROUNDS, SHOWN = 10, 30, 8, 4, 12, 20_000
AGAIN = (408, 409, 429, 500, 502, 503, 504, 529)
HEADERS = {"x-api-key": "k", "anthropic-version": "2023-06-01"}
COMMAND = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
SHELL = {"name": "bash", "description": "Runs a shell command.", "input_schema": COMMAND}
QUESTIONS = {
    "type": "array",
    "minItems": 1,
    "items": {
        "type": "object",
        "properties": {"question": {"type": "string"}, "header": {"type": "string", "maxLength": 12}},
        "required": ["question", "header"],
    },
}
ASKS = {
    "name": "AskUserQuestion",
    "description": "Asks the user.",
    "input_schema": {"type": "object", "properties": {"questions": QUESTIONS}, "required": ["questions"]},
}
LOST = "The result of this call is lost. Ask before you run it again."
REJECTED = "The user doesn't want to proceed with this tool use. It was rejected, and nothing was changed."
TOLD = "You are a careful helper. Leave alone what you were not asked about."
SAID = "(The turn ended before an answer was there.)"
SORRY = "I am thinking about how to help you."
DONE = "Task completed with bash. No further action needed."
GO_ON = [{"type": "text", "text": "Please go on, and use your tools."}]
NUDGES = 2
BUGS: set[str] = set()
Message = dict[str, Any]
HALF: list[dict[int, Message]] = []
"""The blocks of each reply, as far as they have come."""
SHOWN_NOW: list[str] = []
"""What its user has read of the last reply."""
WORDS: list[str] = []
"""The text of each reply of the turn."""
USED: list[list[int]] = []
"""The tokens of input and output of each reply."""
LOADED: list[int] = []
"""How many messages each turn began with."""


class FailedError(Exception):
    """Ends the turn, with words for the user."""


class RetryError(Exception):
    """Another try may work."""

    def __init__(self, why: str, wait_s: float | None = None) -> None:
        super().__init__(why)
        self.wait_s = wait_s


class SilentError(RetryError):
    """The reply was cut at its token limit before its first word."""


class TooLongError(FailedError):
    """The conversation is longer than the model's window."""


class RefusedError(FailedError):
    """The provider refuses what its user said."""


class PictureError(FailedError):
    """The provider does not take a picture of the conversation."""


class Session:
    """Messages, one a line; what a crash left open is closed at load."""

    def __init__(self, folder: str) -> None:
        own = f"{model()}-" if "each-model-its-own-session" in BUGS else ""
        self.path = Path(folder) / f"{own}messages.jsonl"
        self.messages: list[Message] = []
        found = self.path.exists() and "begins-again" not in BUGS
        lines = self.path.read_bytes().split(b"\n") if found else []
        for line in lines:
            if line and "torn-line-is-fatal" in BUGS:
                self.messages.append(json.loads(line))
                continue
            try:
                self.messages.append(json.loads(line))
            except ValueError:
                break
        if lines:
            self._rewrite()
        if "no-repair" not in BUGS:
            self._repair()
        if "remembers-only-words" in BUGS:
            self.messages = [it for it in self.messages if it["content"] and it["content"][0]["type"] == "text"]
            self.messages = [it for it in self.messages if not calls_of(it["content"])]

    def _rewrite(self) -> None:
        fresh = self.path.with_suffix(".new")
        fresh.write_text("".join(json.dumps(message) + "\n" for message in self.messages))
        fresh.replace(self.path)

    def _repair(self) -> None:
        last = self.messages[-1] if self.messages else None
        if last and last["role"] == "assistant" and calls_of(last["content"]):
            if "repairs-without-signatures" in BUGS:
                last["content"] = [
                    {key: it for key, it in part.items() if key != "signature"} for part in last["content"]
                ]
                self._rewrite()
            why = REJECTED if "denies-that-it-ran" in BUGS else LOST
            self.add("user", [result(call, why, error=True) for call in calls_of(last["content"])])
        if self.messages and self.messages[-1]["role"] == "user":
            self.add("assistant", [{"type": "text", "text": SAID}])

    def drop_from(self, message: str) -> None:
        """Drop the turn that this message began."""
        begins = [number for number, it in enumerate(self.messages) if it["content"][0].get("text") == message]
        del self.messages[begins[-1] :]
        self._rewrite()

    def drop_rounds_of(self, message: str) -> None:
        """Drop what followed this message."""
        begins = [number for number, it in enumerate(self.messages) if it["content"][0].get("text") == message]
        del self.messages[begins[-1] + 1 :]
        self._rewrite()

    def shorten(self) -> None:
        """Drop the results of the earlier turns; their calls, questions and answers stay."""
        asked = [n for n, it in enumerate(self.messages) if it["role"] == "user" and it["content"][0]["type"] == "text"]
        for message in self.messages[: asked[-1]]:
            for part in message["content"]:
                if part["type"] == "tool_result":
                    part["content"] = "(dropped)"
        self._rewrite()

    def drop_images(self) -> None:
        """Put words in the place of each picture."""
        for message in self.messages:
            message["content"] = [
                {"type": "text", "text": "(a picture that the provider did not take)"} if it["type"] == "image" else it
                for it in message["content"]
            ]
        self._rewrite()

    def add(self, role: str, content: list[Message]) -> None:
        self.messages.append({"role": role, "content": content, "by": model()})
        if "stores-at-the-end" in BUGS:
            if role == "assistant" and not calls_of(content):
                self._rewrite()
            return
        with self.path.open("a") as file:
            file.write(json.dumps(self.messages[-1]) + "\n")


def model() -> str:
    return next((it.removeprefix("model=") for it in BUGS if it.startswith("model=")), "m")


def as_sent(message: Message) -> Message:
    """A message without the thoughts of another model, which can't read them."""
    if "by" not in message:
        return message
    foreign = message["by"] != model() and "keeps-foreign-thoughts" not in BUGS
    content = [part for part in message["content"] if not (foreign and part["type"] == "thinking")]
    return {"role": message["role"], "content": content}


def calls_of(content: Sequence[Message]) -> list[Message]:
    return [part for part in content if part["type"] == "tool_use"]


def result(call: Message, text: str, *, error: bool = False) -> Message:
    return {"type": "tool_result", "tool_use_id": call["id"], "content": text, "is_error": error}


# The model


async def ask(http: aiohttp.ClientSession, url: str, messages: list[Message], **more: Any) -> tuple[list[Message], str]:
    """One call: the content, and the reason why it stopped."""
    SHOWN_NOW.clear()
    sent = messages[-9:] if "keeps-the-last-nine" in BUGS else messages
    if "restores-for-one-request" in BUGS and USED:
        sent = messages[LOADED[-1] :]
    sent = without_copies(sent) if "takes-an-id-for-a-copy" in BUGS else sent
    body = {"model": model(), "max_tokens": 4000, "stream": True, "messages": [*map(as_sent, sent)], **more}
    if len(messages) <= 9 or "its-system-text-is-the-oldest-message" not in BUGS:
        body = {"system": TOLD, **body}
    if "thinks" in BUGS:
        body["thinking"] = {"type": "enabled", "budget_tokens": 1024}
    idle = None if "no-timer" in BUGS else IDLE_S
    total = None if BUGS & {"no-timer", "no-total-timer"} else TOTAL_S
    timer = aiohttp.ClientTimeout(total=None, sock_read=idle, sock_connect=None if "no-timer" in BUGS else 5)
    try:
        async with (
            asyncio.timeout(total),
            http.post(f"{url}/v1/messages", json=body, headers=HEADERS, timeout=timer) as reply,
        ):
            if reply.status != 200:
                await refused(reply)
            if "event-stream" not in reply.headers.get("content-type", "") and "trusts-the-status" not in BUGS:
                raise FailedError(f"Error: not a stream, but {(await reply.text())[:100]}")
            return await read(reply)
    except (aiohttp.ClientError, OSError, ValueError) as wrong:
        late = isinstance(wrong, TimeoutError)
        raise RetryError(f"Error: {'the model timed out' if late else f'connection: {wrong!r}'}") from wrong


def without_copies(messages: list[Message]) -> list[Message]:
    """Leave out each result whose id an earlier one has."""
    seen: set[str] = set()
    kept: list[Message] = []
    for message in messages:
        fresh = [part for part in message["content"] if part.get("tool_use_id", "") not in seen]
        seen |= {part["tool_use_id"] for part in fresh if "tool_use_id" in part}
        kept += [{**message, "content": fresh}] if fresh else []
    return kept


async def refused(reply: aiohttp.ClientResponse) -> None:
    body = await reply.text()
    says = f"Error: status {reply.status}: {body[:300]}"
    if "expects-an-error-object" in BUGS:
        says = f"Error: {json.loads(body).get('error').get('message')}"
    if reply.status in AGAIN or "every-status-is-retried" in BUGS:
        raise RetryError(says, wait_of(reply.headers.get("retry-after")))
    if "process image" in says and "keeps-images" not in BUGS:
        raise PictureError(says)
    if "prompt is too long" in says and "never-compacts" not in BUGS:
        raise TooLongError(says)
    raise RefusedError(says) if reply.status == 400 else FailedError(says)


def wait_of(value: str | None) -> float | None:
    if value is None or "no-retry-after" in BUGS:
        return None
    try:
        return float(value)
    except ValueError:
        return 0 if "dates-are-no-time" in BUGS else max(0.0, (parsedate_to_datetime(value).timestamp() - time.time()))


async def read(reply: aiohttp.ClientResponse) -> tuple[list[Message], str]:
    blocks: dict[int, Message] = {}
    HALF.append(blocks)
    stop, ended = "", False
    async for event in events(reply):
        match event["type"]:
            case "message_note" if "knows-all-events" in BUGS:
                raise FailedError("Error: an unknown event: message_note")
            case "error" if "no-error-events" not in BUGS:
                raise RetryError(f"Error: {event['error'].get('type')}: {event['error'].get('message')}")
            case "content_block_start" if "melts-calls-of-a-stream" in BUGS and has_a_call(blocks, event):
                pass
            case "content_block_start":
                left = HALF[-2].get(event["index"], {}) if len(HALF) > 1 and "keeps-half-arguments" in BUGS else {}
                blocks[event["index"]] = {**event["content_block"], "raw": left.get("raw", "")}
            case "content_block_delta":
                delta = event["delta"]
                said = "text", "partial_json", "thinking"
                block = blocks.get(event["index"]) or next(it for it in blocks.values() if it["type"] == "tool_use")
                block["raw"] += "".join(delta.get(key, "") for key in said)
                if "shows-as-it-comes" in BUGS:
                    show(delta.get("text", ""))
                block["signature"] = delta.get("signature", "")
            case "content_block_stop" if "runs-while-it-reads" in BUGS:
                block = whole(dict(blocks[event["index"]]))
                if block["type"] == "tool_use":
                    await shell(block["input"]["command"])
            case "message_start":
                USED.append([event["message"]["usage"]["input_tokens"], 0])
            case "message_delta":
                USED[-1][1] = event["usage"]["output_tokens"]
                stop = event["delta"].get("stop_reason") or stop
            case "message_stop":
                ended = True
                break
    if not ended and "early-end-is-an-end" not in BUGS:
        raise RetryError("Error: the stream ended early")
    thinks = "thinks" in BUGS
    return [whole(block) for _, block in sorted(blocks.items()) if thinks or block["type"] != "thinking"], stop


def show(text: str) -> None:
    SHOWN_NOW.append(text)
    print(text, end="", flush=True)


async def events(reply: aiohttp.ClientResponse) -> AsyncIterator[Message]:
    async for line in reply.content:
        if line.startswith(b"data: " if "expects-one-form" in BUGS else b"data:"):
            try:
                yield json.loads(line[5:])
            except ValueError:
                if "skips-broken-events" not in BUGS:
                    raise


def has_a_call(blocks: dict[int, Message], event: Message) -> bool:
    """Whether a call begins beside another one of the same reply."""
    return event["content_block"]["type"] == "tool_use" and any(it["type"] == "tool_use" for it in blocks.values())


def whole(block: Message) -> Message:
    raw, signature = block.pop("raw"), block.pop("signature", None)
    if block["type"] == "thinking":
        return {"type": "thinking", "thinking": raw, "signature": signature or ""}
    if block["type"] != "tool_use":
        return {**block, "text": raw}
    for text in (raw or "{}", f'{raw}"}}') if "mends-half-arguments" in BUGS else (raw or "{}",):
        try:
            given = json.loads(text)
            break
        except ValueError:
            given = None
    bad = not isinstance(given, dict)
    return {**block, "input": {} if bad else given, "bad": bad and "broken-arguments-are-none" not in BUGS}


async def tried(http: aiohttp.ClientSession, url: str, messages: list[Message], tools: list[Message]) -> Any:
    """The first whole reply of a few tries."""
    endless = bool(BUGS & {"retries-for-ever", "every-status-is-retried"})
    for attempt in range(10**6):
        try:
            return await layered(http, url, messages, tools)
        except RetryError as wrong:
            wait = wrong.wait_s if wrong.wait_s is not None else 0.5 * 2 ** min(attempt, 3)
            last = 0 if "stays-down" in BUGS else 1 if "tries-twice" in BUGS else TRIES - 1
            silent = isinstance(wrong, SilentError) and "asks-again-when-cut" in BUGS
            ends = "".join(SHOWN_NOW) or attempt >= last or wait > 15 or "keeps-half-a-thought" in BUGS
            if not (endless or silent) and ends:
                raise FailedError(str(wrong)) from wrong
            if "each-try-adds-the-message" in BUGS:
                messages.append(messages[-1])
            await asyncio.sleep(0 if "no-back-off" in BUGS else wait)


async def layered(http: aiohttp.ClientSession, url: str, messages: list[Message], tools: list[Message]) -> Any:
    """One try; with the bug, a layer of its own that tries as often."""
    for _ in range(TRIES - 1 if "two-layers-of-retries" in BUGS else 0):
        with suppress(RetryError):
            return said_something(*await ask(http, url, messages, tools=tools))
    return said_something(*await ask(http, url, messages, tools=tools))


def said_something(content: list[Message], stop: str) -> tuple[list[Message], str]:
    texts = [part.get("text", "") for part in content]
    said = any(text if "white-space-is-an-answer" in BUGS else text.strip() for text in texts)
    if stop == "tool_use" and "believes-the-reason" in BUGS:
        return content, stop
    if "empty-is-an-answer" not in BUGS and not said and not calls_of(content):
        raise (SilentError if stop == "max_tokens" else RetryError)(f"Error: the model gave an empty reply ({stop})")
    return content, stop


# Its tools


async def shell(command: Any) -> tuple[str, bool]:
    if not isinstance(command, str) and "arguments-unchecked" not in BUGS:
        return "Error: invalid input" if "says-only-invalid" in BUGS else "Error: `command` must be text", True
    if "one-terminal-for-all" in BUGS:
        return await in_one_terminal(command), False
    if "one-shell-for-all" in BUGS:
        return await in_one_shell(command), False
    late, one_by_one = "reads-when-it-has-ended" in BUGS, "reads-one-pipe-first" in BUGS
    process = await asyncio.create_subprocess_exec(
        *("sh", "-c", command), stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE if one_by_one else asyncio.subprocess.STDOUT, start_new_session=True,
    )  # fmt: skip
    said = bytearray()
    reader = asyncio.create_task(asyncio.sleep(0) if late else collect(process, said))
    note = ""
    try:
        async with asyncio.timeout(None if "no-tool-timer" in BUGS else TOOL_S):
            while process.returncode is None:  # `wait()` waits for the end of the output too
                await asyncio.sleep(0.02)
            reader = asyncio.create_task(collect(process, said)) if late else reader
            await asyncio.wait([reader], timeout=None if "waits-for-the-output" in BUGS else 0.2)
        note = "" if process.returncode == 0 else f"\n(exit code {process.returncode})"
    except TimeoutError:
        note = f"\n(stopped after {TOOL_S} s)"
    finally:
        reader.cancel()
        if process.returncode is None:
            with suppress(OSError):
                (os.kill if "kills-only-the-shell" in BUGS else os.killpg)(process.pid, signal.SIGKILL)
            await asyncio.gather(process.wait(), *([collect(process, said)] if late or one_by_one else []))
    if note and "failure-ends-the-turn" in BUGS:
        raise FailedError(f"Error: the tool failed: {note}")
    text = bytes(said).decode("utf-8", "strict" if "decodes-strictly" in BUGS else "replace")
    text = "".join(letter if letter >= " " or letter in "\n\t" else "�" for letter in text)
    if "says-only-that-it-worked" in BUGS and not note:
        return "Command executed successfully (exit code 0).", False
    shown = len(text) if "never-cuts" in BUGS else SHOWN
    text, left = text[:shown], len(text) - shown
    if left > 0 and "cuts-silently" not in BUGS:
        text += f"\n(cut: {left} characters more)"
    if "failure-looks-like-success" in BUGS:
        return text, False
    return ("" if "stopped" in note and "a-stop-has-no-output" in BUGS else text) + note or "(no output)", bool(note)


async def in_one_shell(command: str) -> str:
    """What an interactive shell prints before the words behind the command come out."""
    pipes = {"stdin": asyncio.subprocess.PIPE, "stdout": asyncio.subprocess.PIPE, "stderr": asyncio.subprocess.STDOUT}
    process = await asyncio.create_subprocess_exec("sh", **pipes)
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(f"{command}; echo all-done\n".encode())
    said = b""
    try:
        while not said.endswith(b"all-done\n"):
            said += await process.stdout.readline()
    finally:
        process.kill()
        await process.wait()
    return said.removesuffix(b"all-done\n").decode()


TERMINALS: list[int] = []
PROMPT = b"<ready>"


async def in_one_terminal(command: str) -> str:
    """What the only terminal of this process shows when it is ready again, or after a while."""
    if not TERMINALS:
        pid, terminal = pty.fork()
        if not pid:
            pager = {"PAGER": "cat"} if "pages-with-cat" in BUGS else {}
            os.execvpe("sh", ["sh"], os.environ | {"PS1": PROMPT.decode(), "PS2": ""} | pager)
        os.set_blocking(terminal, False)
        TERMINALS.append(terminal)
        await shown(terminal)
        os.write(terminal, b"stty -echo\n")
        await shown(terminal)
    # As one command, so that one prompt follows all of its lines.
    os.write(TERMINALS[0], f"{{ {command}\n}}\n".encode())
    return (await shown(TERMINALS[0])).replace("\r\n", "\n") or "(nothing new)"


async def shown(terminal: int) -> str:
    said = b""
    with suppress(TimeoutError):
        async with asyncio.timeout(TOOL_S):
            while not said.endswith(PROMPT):
                with suppress(BlockingIOError):
                    said += os.read(terminal, 65536)
                await asyncio.sleep(0.02)
    return said.removesuffix(PROMPT).decode()


async def collect(process: asyncio.subprocess.Process, said: bytearray) -> None:
    for pipe in filter(None, (process.stdout, process.stderr)):
        while piece := await pipe.read(65536):
            said.extend(piece)


class Host:
    """An MCP server over HTTP."""

    def __init__(self, http: aiohttp.ClientSession, url: str) -> None:
        self.http, self.url, self.count, self.session = http, url, 0, ""
        self.images: list[Message] = []
        """Pictures of results, for the next request."""
        self.names: dict[str, str] = {}
        """What the server calls each tool, by the name that the model reads."""

    async def rpc(self, method: str, params: Message, *, timer: float | None = TOOL_S) -> Message:
        self.count += 1
        mine, notify = self.count, method.startswith("notifications/")
        body = {"jsonrpc": "2.0", "method": method, "params": params, **({} if notify else {"id": mine})}
        head = {"accept": "application/json, text/event-stream"}
        head |= {"mcp-session-id": self.session} if self.session else {}
        async with asyncio.timeout(timer), self.http.post(self.url, json=body, headers=head) as reply:
            if reply.status >= 400:
                raise OSError(f"status {reply.status}")
            self.session = reply.headers.get("mcp-session-id", self.session)
            if notify:
                return {}
            if "event-stream" not in reply.headers.get("content-type", ""):
                return json.loads(await reply.read())
            async for line in reply.content:
                if line.startswith(b"data: ") and (found := json.loads(line[6:])).get("id") == mine:
                    return found
        raise OSError("no response")

    async def open(self) -> list[Message]:
        timer = None if "no-timer-at-start" in BUGS else TOOL_S
        who = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "p", "version": "1"}}
        await self.rpc("initialize", who, timer=timer)
        await self.rpc("notifications/initialized", {}, timer=timer)
        tools = (await self.rpc("tools/list", {}, timer=timer))["result"]["tools"]
        if "expects-properties" in BUGS:
            [it["inputSchema"]["properties"].keys() for it in tools]
        tools = [it for it in tools if "schemas-as-they-are" in BUGS or fits(it["inputSchema"])]
        self.names = {it["name"] if "names-as-they-are" in BUGS else plain_name(it["name"]): it["name"] for it in tools}
        return [
            {"name": name, "description": it["description"], "input_schema": it["inputSchema"]}
            for name, it in zip(self.names, tools, strict=True)
        ]

    async def call(self, name: str, given: Message) -> tuple[str, bool]:
        timer = None if "no-tool-timer" in BUGS else TOOL_S
        try:
            reply = await self.rpc("tools/call", {"name": self.names[name], "arguments": given}, timer=timer)
            if "reads-the-first-content" in BUGS:
                return reply["result"]["content"][0]["text"], False
            text = "".join(part.get("text", "") for part in reply["result"]["content"])
            if "takes-images" in BUGS:
                self.images += [it for it in reply["result"]["content"] if it["type"] == "image"]
            failed = bool(reply["result"].get("isError"))
        except (OSError, ValueError, KeyError, aiohttp.ClientError) as wrong:
            text, failed = f"Error: the tool server gave no result: {wrong!r}", True
        if failed and "failure-ends-the-turn" in BUGS:
            raise FailedError(f"Error: the tool failed: {text}")
        return text[:SHOWN], failed


def plain_name(name: str) -> str:
    """A name that every provider takes."""
    return "".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in name)


def fits(schema: Message) -> bool:
    """Whether the provider takes a schema; a tool with another one is left out."""
    union = any(it in schema for it in ("anyOf", "oneOf", "allOf"))
    return not union and all(re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", it) for it in schema.get("properties", {}))


async def run(call: Message, host: Host | None, tools: list[Message]) -> Message:
    if call.get("bad"):
        if "a-broken-call-ends-the-turn" in BUGS:
            await asyncio.sleep(0.3)
            raise FailedError("Error: the arguments are no JSON object")
        return result(call, "Error: the arguments are no JSON object", error=True)
    if call["name"] == "bash":
        for _ in range(1 if "runs-each-call-twice" in BUGS else 0):
            await shell(call["input"]["command"])
        given = call["input"]
        text, failed = await shell(given["command"] if "arguments-unchecked" in BUGS else given.get("command"))
    elif host and call["name"] in {tool["name"] for tool in tools}:
        text, failed = await host.call(call["name"], call["input"])
    elif call["name"] == ASKS["name"]:
        if "waits-for-its-user" in BUGS:
            await asyncio.sleep(10**6)
        text, failed = "Error: no user is there to answer", True
        if "invents-an-answer" in BUGS:
            text, failed = "User has answered your questions: . You can now continue.", False
    elif "unknown-tool-is-fatal" in BUGS:
        raise FailedError(f"Error: there is no tool {call['name']}")
    elif "unknown-tool-is-empty" in BUGS:
        text, failed = "", False
    else:
        text, failed = f"Error: there is no tool {call['name']}", True
    return result(call, text, error=failed)


# A turn


async def turn(url: str, folder: str, tool_url: str, message: str) -> str:
    if Path(folder, "down").exists():
        await asyncio.sleep(10**6)
    if Path(folder, "dead").exists():
        raise FailedError("Error: the chosen model is out of reach")
    session = Session(folder)
    LOADED.append(len(session.messages))
    session.add("user", [{"type": "text", "text": message}])
    if "says-it-twice" in BUGS:
        session.add("user", [{"type": "text", "text": message}])
    async with aiohttp.ClientSession() as http:
        if "titled" in BUGS:
            await titled(http, url, message)
        host, tools = (Host(http, tool_url) if tool_url != "-" else None), [SHELL, *([ASKS] if "asks" in BUGS else [])]
        if host:
            try:
                tools += await host.open()
            except (OSError, ValueError, KeyError, aiohttp.ClientError):
                if BUGS & {"down-at-start-is-fatal", "expects-properties"}:
                    raise
        for number in range(10**6 if "no-limit-of-rounds" in BUGS else ROUNDS):
            try:
                answer = await step(http, url, session, host, tools)
                if number == ROUNDS - 1 and "ends-silently-at-its-limit" in BUGS:
                    return ""
                if number == ROUNDS - 1 and "ends-well-at-its-limit" in BUGS:
                    return f"I stopped after {ROUNDS} rounds."
            except FailedError as wrong:
                if isinstance(wrong, RefusedError) and number == 0 and "keeps-what-is-refused" not in BUGS:
                    session.drop_from(message)
                if "keeps-the-message-of-a-failed-turn-only" in BUGS:
                    session.drop_rounds_of(message)
                keep_half_a_thought(session)
                if "".join(SHOWN_NOW) and "loses-what-was-read" not in BUGS:
                    session.add("assistant", [{"type": "text", "text": f"{''.join(SHOWN_NOW)} (broken off)"}])
                raise
            except asyncio.CancelledError:
                if BUGS & {"settles-for-long", "settles-for-ever"}:
                    await asyncio.sleep(30 if "settles-for-long" in BUGS else 10**6)
                if "forgets-a-stopped-turn" in BUGS:
                    session.drop_from(message)
                keep_half_a_thought(session)
                raise
            if answer is None and "calls-a-loop-a-success" in BUGS and repeats_itself(session):
                session.add("assistant", [{"type": "text", "text": DONE}])
                answer = DONE
            if answer is not None:
                return answer
    raise FailedError(f"Error: stopped after {ROUNDS} rounds of tools")


def repeats_itself(session: Session) -> bool:
    """Whether the last four replies make one call."""
    made = [calls_of(it["content"]) for it in session.messages if it["role"] == "assistant"][-4:]
    asked = [[(call["name"], call["input"]) for call in calls] for calls in made]
    return len(asked) == 4 and bool(asked[0]) and all(it == asked[0] for it in asked)


def keep_half_a_thought(session: Session) -> None:
    """The bug: what has come of a reply stays in the conversation."""
    if "keeps-half-a-thought" in BUGS and HALF and HALF[-1]:
        came = [whole(block) for block in HALF[-1].values()]
        if "loses-signatures-at-a-stop" in BUGS:
            came = [{key: it for key, it in block.items() if key != "signature"} for block in came]
        session.add("assistant", came)


async def step(
    http: aiohttp.ClientSession, url: str, session: Session, host: Host | None, tools: list[Message]
) -> str | None:
    """One reply, and its tools; the answer, if it has none."""
    if "asks-twice" in BUGS:
        await tried(http, url, session.messages, tools)
    try:
        content, stop = await tried(http, url, session.messages, tools)
    except PictureError:
        session.drop_images()
        content, stop = await tried(http, url, session.messages, tools)
    except TooLongError:
        before = json.dumps(session.messages)
        session.shorten()
        if json.dumps(session.messages) == before:
            raise  # the same again would be refused again
        content, stop = await tried(http, url, session.messages, tools)
    calls = calls_of(content)
    if "one-call-of-several" in BUGS and calls:
        content = [part for part in content if part["type"] != "tool_use" or part is calls[0]]
        calls = calls[:1]
    WORDS.append(text_of(content))
    if stop == "max_tokens" and calls and "answers-cut-calls" in BUGS:
        why = "a parameter is missing" if "hides-the-cut" in BUGS else "the reply was cut at its limit of tokens"
        session.add("assistant", [{key: it for key, it in part.items() if key != "bad"} for part in content])
        session.add("user", [result(call, f"Error: {why}", error=True) for call in calls])
        return None
    if stop == "max_tokens" and "half-calls-run" not in BUGS and "no-stop-reason" not in BUGS:
        raise FailedError("Error: the reply was truncated at max_tokens")
    if stop == "refusal" and "no-stop-reason" not in BUGS:
        raise FailedError(f"Error: the model refused: {text_of(content)}")
    if len({call["id"] for call in calls}) < len(calls):
        raise FailedError("Error: two tool calls with one id")
    lasting = [part for part in content if part["type"] == "tool_use"] if calls and "drops-words" in BUGS else content
    if "keeps-an-empty-part" not in BUGS:  # the provider refuses it if it comes back
        lasting = [part for part in lasting if part["type"] != "text" or part["text"]]
    if calls and "drops-thoughts" in BUGS:
        lasting = [part for part in lasting if part["type"] != "thinking"]
    session.add("assistant", [{key: value for key, value in part.items() if key != "bad"} for part in lasting])
    if "takes-examples-for-calls" in BUGS and '"arguments":' in text_of(content):
        session.add("user", [result({"id": "toolu_of_the_text"}, "example")])
        return None
    if not calls and text_of(content).startswith("Let me") and told_to_go_on(session):
        return await step(http, url, session, host, tools)
    if not calls:
        if "stores-its-answer-twice" in BUGS:
            session.add("assistant", content)
        return content[0].get("text", "") if "shows-the-first-part" in BUGS else text_of(content)
    if any(call["name"] == ASKS["name"] for call in calls) and (shown := asked(session, calls)) is not None:
        return shown
    if "one-kind-of-tool" in BUGS and len({call["name"] for call in calls}) > 1:
        raise FailedError(f"Error: tool call {calls[1]['name']} does not match {calls[0]['name']}")
    if "runs-the-queue-to-its-end" in BUGS:
        done = await to_the_last(calls, host, tools)
    elif "a-stop-is-a-failure" in BUGS:
        done = [await unstopped(call, host, tools) for call in calls]
    else:
        done = await asyncio.gather(*(run(call, host, tools) for call in calls))
    session.add("user", [*kept(done), *pictures(host)])
    return None


def asked(session: Session, calls: list[Message]) -> str | None:
    """What ends a turn in which the model asks its user; None: the model is told that no user is there."""
    if "a-question-ends-the-turn" not in BUGS:
        return None
    session.add("user", [result(call, "The user answers with the next message.") for call in calls])
    return "" if "asks-silently" in BUGS else calls[0]["input"]["questions"][0]["question"]


async def to_the_last(calls: list[Message], host: Host | None, tools: list[Message]) -> list[Message]:
    """The bug: calls run one after the other, and a stop waits for all of them."""

    async def queue() -> list[Message]:
        return [await run(call, host, tools) for call in calls]

    task = asyncio.create_task(queue())
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await task
        raise


async def unstopped(call: Message, host: Host | None, tools: list[Message]) -> Message:
    """The bug: a stop of the turn counts as a failure of the tool."""
    try:
        return await run(call, host, tools)
    except asyncio.CancelledError:
        if task := asyncio.current_task():
            task.uncancel()
        return result(call, "Error: cancelled", error=True)


def told_to_go_on(session: Session) -> bool:
    """After words that only announce something the model is told to go on: twice, or with the bug forty times."""
    told = [it for it in session.messages if it["content"] == GO_ON]
    if len(told) >= (40 if "tells-it-forty-times-to-go-on" in BUGS else NUDGES):
        return False
    session.add("user", GO_ON)
    return True


def pictures(host: Host | None) -> list[Message]:
    """The pictures of the latest results, as blocks of the message with the results."""
    taken, host_images = list(host.images if host else []), host.images if host else []
    host_images.clear()
    named = [{"type": "base64", "media_type": it["mimeType"], "data": it["data"]} for it in taken]
    return [{"type": "image", "source": source} for source in named]


def kept(done: list[Message]) -> list[Message]:
    """The results that go into the session."""
    if "empty-result-is-left-out" in BUGS and any(it["content"] == "(no output)" for it in done):
        return [{"type": "text", "text": "It is done."}]
    if "no-results-after-a-failure" in BUGS and any(it["is_error"] for it in done):
        return [{"type": "text", "text": "A tool failed."}]
    if "only-the-failed-result" in BUGS and any(it["is_error"] for it in done):
        return [it if it["is_error"] else {**it, "content": "cancelled"} for it in done]
    if "no-words-of-a-failure" in BUGS:
        return [{**it, "content": "Error: the tool failed"} if it["is_error"] else it for it in done]
    return list(done)


def text_of(content: list[Message]) -> str:
    return "".join(part.get("text", "") for part in content)


async def titled(http: aiohttp.ClientSession, url: str, message: str) -> None:
    """Ask for a title; the conversation does without it."""
    asked = [{"role": "user", "content": f"Name this conversation: {message}"}]
    try:
        content, _ = await ask(http, url, asked, system="You write a title of three words.")
        if "title-is-needed" in BUGS:
            text_of(content).split()[0]
    except (FailedError, RetryError) as wrong:
        if "title-is-needed" in BUGS:
            raise FailedError(str(wrong)) from wrong


async def main(argv: Sequence[str]) -> int:
    """Play one message: its answer on stdout, or an error on stderr."""
    bugs, url, folder, tool_url, message = argv
    BUGS.clear()
    BUGS.update(bugs.split(","))
    if "ignores-the-stop" in BUGS:
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, lambda: None)
    lock = Path(folder, "lock")
    if lock.exists() and "an-old-lock-resets" in BUGS:
        Path(folder, "messages.jsonl").unlink(missing_ok=True)
    lock.touch()
    try:
        USED.clear()
        WORDS.clear()
        HALF.clear()
        answer = await turn(url, folder, tool_url, message)
        shown = "" if "shows-as-it-comes" in BUGS else answer
        if "shows-each-step-longer" in BUGS:
            shown = "\n".join("".join(WORDS[:steps]) for steps in range(1, len(WORDS) + 1))
        shown = shown[:4000] if "shows-four-thousand-characters" in BUGS else shown
        print(json.dumps({"answer": answer, "usage": used()}) if "tells-usage" in BUGS else shown)
    except (FailedError, OSError, KeyError, ValueError, IndexError, TypeError, AttributeError) as wrong:
        lock.unlink()
        return failed(wrong, folder)
    lock.unlink()
    return 0


def used() -> Message:
    """The tokens of the turn."""
    counted = USED[-1:] if "counts-the-last-reply" in BUGS else USED
    return {"input_tokens": sum(it[0] for it in counted), "output_tokens": sum(it[1] for it in counted)}


def failed(wrong: Exception, folder: str) -> int:
    if "loses-history-after-an-error" in BUGS:
        Path(folder, "messages.jsonl").unlink(missing_ok=True)
    if "a-dead-model-stays" in BUGS and "status 404" in str(wrong):
        Path(folder, "dead").touch()
    if "stays-down" in BUGS and "connection" in str(wrong):
        Path(folder, "down").touch()
    if "stores-the-failure" in BUGS:
        with Path(folder, "messages.jsonl").open("a") as file:
            file.write(json.dumps({"role": "assistant", "content": []}) + "\n")
    if "says-sorry" in BUGS:
        print(SORRY)
        return 0
    if "hides-the-cause" in BUGS:
        wrong = FailedError("Error: failed to select an agent")
    if "says-nothing" not in BUGS:
        print(str(wrong) if str(wrong).startswith("Error") else f"Error: {wrong!r}", file=sys.stderr)
    return 1


simulate = main

if __name__ == "__main__":
    try:
        sys.exit(asyncio.run(main(sys.argv[1:])))
    except KeyboardInterrupt:
        sys.exit(130)
