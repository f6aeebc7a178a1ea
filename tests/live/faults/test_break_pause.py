"""A reply that breaks in its middle: the bytes before the break arrive also at a client that reads at its ease."""

from typing import Any

from wedgehog.harness.record.events.call import ReplyEnded

READS_SLOWLY = """\
import asyncio, json, sys
url, session, message = sys.argv[1:4]
host, port = url.removeprefix("http://").split(":")
body = json.dumps({"model": "m", "max_tokens": 999, "stream": True, "messages": [{"role": "user", "content": message}]})
head = ["POST /v1/messages HTTP/1.1", "host: x", "content-type: application/json", "x-api-key: k",
    "anthropic-version: 2023-06-01", f"content-length: {len(body)}", "", body]
data = b""
async def ask():  # a StreamReader raises its error before it gives out what it holds
    global data
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write("\\r\\n".join(head).encode())
    while not data.endswith(b"0\\r\\n\\r\\n"):
        await asyncio.sleep(0.004)
        data += await reader.read(200) or sys.exit("Error: the stream ended early")
try:
    asyncio.run(ask())
except ConnectionResetError:
    body = data.partition(b"\\r\\n\\r\\n")[2]
    sys.exit(f"Error: connection reset after {len(body)} bytes")
print("".join(json.loads(part[6:]).get("delta", {}).get("text", "") for part in data.decode().splitlines()
    if part.startswith("data: ")))
"""


def test_the_bytes_before_a_reset_are_read_by_a_slow_client(
    wedgehog: Any, told: Any, agent: Any, results: Any, network: str
):
    """Without the pause, the client drops what it has not read by then; the history says how much was delivered."""
    cut = {"link": "llm", "at": {"phase": "middle"}, "do": {"cut": {"then": "rst"}}}
    story = told(
        "reset",
        {"text": "This is a long answer that has many words, so that it comes in pieces. {nonce}"},
        faults=[cut],
    )
    ran = wedgehog("run", story, "--agent", agent(code=READS_SLOWLY), network)
    played = results()["reset"]
    assert played.verdict == "pass", (ran.stderr, played.says)
    (ended,) = [event for event in played.history.of(ReplyEnded) if event.how == "cut"]
    assert f"after {ended.bytes_delivered} bytes" in played.history.turns[0].end.stderr
