"""A service with a page: `paged.py PORT LLM_URL FOLDER [BUG]`. A conversation has a path of its own, `/c/ID`.

The page streams an answer, has a button to stop it, and shows errors. Its bugs:

- `spins`: the page never notices that the service has failed
- `twice`: the answer is shown as a stream, and once more when it is whole
- `shows-nothing`: the page, loaded again, does not show what was said
- `knows-nothing`: the page, loaded again, shows what was said, and the model is not told
- `stays-busy`: the service forgets to say that a turn whose page has gone is over
- `looks-idle`: the page, loaded while the service works, shows neither that nor what comes
- `trips`: the button to stop does its work, and then reads what is not there
- `beside`: an error stands beside each answer
- `stops-nothing`: the button to stop changes the page only
- `anew`: no bug: each time that the page is loaded, a new conversation begins
- `by-clock`: the page shows only what is later than the message, by its own clock
- `dead`: when the stream breaks, the page keeps what had come, and says nothing
- `holes`: when the stream breaks, the page goes on with what the model says later
- `shows-again`: when the stream breaks, the page appends all that was said

Its user may begin another conversation, and come back by the list. More bugs:

- `follows`: what streams in stands in the conversation that is shown
- `shows-half`: a conversation that was left shows what had come by then, until the page is loaded again
- `stays-empty`: so it does, without what had come
- `stops-unseen`: a turn that its user leaves is stopped, and nothing says so
- `stops`: no bug: a note says so
- `one-id`: the messages of all conversations go on with the first one
- `locks`: no bug: while the agent works its user can begin another conversation, and can not write there
- `ignores`: no bug: while the agent works, the button that begins another conversation does nothing
- `lists`: no bug: no conversation has an address, and the list has no links
- `loads`: no bug: each conversation is loaded as a page of its own
"""

import asyncio
import json
import sys
import time
from pathlib import Path

import aiohttp
from aiohttp import web

PORT, LLM, FOLDER = int(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
BUG = sys.argv[4] if len(sys.argv) > 4 else ""
SHELL = {
    "name": "shell",
    "description": "Runs a shell command.",
    "input_schema": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
}
PAGE = """\
<!doctype html><title>Agent</title>
<button id="new">New chat</button>
<nav></nav>
<h1>How can I help?</h1>
<main></main>
<div id="busy" hidden>Thinking …</div>
<div role="alert"></div>
<form><textarea></textarea><button>Send</button></form>
<button id="stop" hidden>Stop</button>
<script>
const bug = BUG, main = document.querySelector("main"), alert = document.querySelector("[role=alert]")
const box = document.querySelector("textarea"), stop = document.querySelector("#stop")
const busy = document.querySelector("#busy")
const named = location.pathname.startsWith("/c/") ? location.pathname.slice(3) : null
let id = named, view = 0, running = 0, first = null
const left = new Set()
function add(who, text) {
  const it = document.createElement("p")
  it.className = who; it.textContent = text; main.append(it)
  return it
}
function working(on) { busy.hidden = stop.hidden = !on; box.disabled = on }
async function load() {
  const mine = view
  if (!id) return
  const kept = await (await fetch("/api/" + id)).json()
  if (mine != view) return
  if (bug == "shows-half" && left.has(id)) return add("agent", "It has been")
  if (bug == "stays-empty" && left.has(id)) return
  if (bug != "shows-nothing") for (const it of kept.said) add(it.who, it.text)
  if (bug == "looks-idle") return
  working(kept.busy)
  if (kept.busy) setTimeout(() => { if (mine == view) { main.replaceChildren(); load() } }, 300)
}
function list() {
  const talks = JSON.parse(localStorage.talks || "[]")
  document.querySelector("nav").replaceChildren(...talks.map((talk) => {
    const link = document.createElement(bug == "lists" ? "li" : "a")
    link.textContent = talk.title
    link.href = "/c/" + talk.id
    link.onclick = (click) => { click.preventDefault(); go(talk.id) }
    return link
  }))
}
function remember(title) {
  const talks = JSON.parse(localStorage.talks || "[]")
  localStorage.talks = JSON.stringify([{id, title: bug == "lists" ? "A talk" : title}, ...talks])
  list()
}
function go(other) {
  if (bug == "ignores" && !busy.hidden) return
  if (bug == "loads") { location.assign(other ? "/c/" + other : "/"); return }
  if (bug == "stops" || bug == "stops-unseen") fetch("/api/" + id, {method: "DELETE"})
  if (!busy.hidden) left.add(id)
  id = other
  if (bug != "lists") history.pushState({}, "", other ? "/c/" + other : "/")
  view += 1
  main.replaceChildren()
  alert.textContent = ""
  working(bug == "locks" && running > 0)
  load()
}
async function allSaid() {
  for (;;) {
    await new Promise((go) => setTimeout(go, 300))
    const kept = await fetch("/api/" + id).then((reply) => reply.json(), () => ({busy: true}))
    if (!kept.busy) return kept.said
  }
}
async function send(text) {
  alert.textContent = ""
  working(true)
  if (!id) {
    id = Math.random().toString(36).slice(2)
    if (bug != "anew" && bug != "lists") history.pushState({}, "", "/c/" + id)
    if (bug != "anew") remember(text)
  }
  add("user", text)
  let it = null, all = "", ended = false
  const sent = Date.now(), mine = view, talk = bug == "one-id" ? first ??= id : id
  const seen = () => mine == view || bug == "follows"
  running += 1
  try {
    const reply = await fetch("/api/" + talk, {method: "POST", body: text})
    const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader()
    let rest = ""
    for (;;) {
      const {value, done} = await reader.read()
      if (done) break
      const lines = (rest + value).split("\\n")
      rest = lines.pop()
      for (const line of lines) {
        const told = JSON.parse(line)
        if (bug == "by-clock" && told.at < sent) continue
        if (told.text) all += told.text
        if (told.text && seen()) { it = it?.isConnected ? it : add("agent", ""); it.textContent = all }
        if (told.error) { if (seen()) alert.textContent = told.error; ended = true }
        if (told.end) ended = true
        if (told.end && bug == "beside") alert.textContent = "Error: the reply could not be serialized"
      }
      if (bug == "by-clock") ended = true
    }
    if (bug == "twice") add("agent", all)
    if (!ended) throw new Error("the connection was lost")
  } catch (wrong) {
    if (bug == "spins") return
    if (bug == "holes" && it) it.textContent = all + (await allSaid()).at(-1).text.split(" ").pop()
    else if (bug == "shows-again") for (const it of await allSaid()) add(it.who, it.text)
    else if (bug != "dead" && seen()) alert.textContent = "Error: " + wrong.message
  }
  running -= 1
  if (seen() || bug == "locks") working(false)
}
box.addEventListener("keydown", (key) => {
  if (key.key != "Enter") return
  key.preventDefault()
  const text = box.value
  box.value = ""
  if (text) send(text)
})
stop.onclick = () => {
  if (bug == "stops-nothing") working(false)
  else fetch("/api/" + id, {method: "DELETE"})
  if (bug == "trips") alert.textContent = "Error: Cannot read properties of undefined (reading 'abort')"
}
document.querySelector("#new").onclick = () => go(null)
list()
load()
</script>
""".replace("BUG", json.dumps(BUG))


class Conversation:
    """What was said, for the page and for the model; kept in a file."""

    def __init__(self, name):
        self.file = FOLDER / f"{name}.json"
        kept = json.loads(self.file.read_text()) if self.file.exists() else {"said": [], "messages": []}
        self.said, self.messages, self.turn = kept["said"], kept["messages"], None

    def keep(self):
        self.file.write_text(json.dumps({"said": self.said, "messages": self.messages}))


def failed(why):
    raise ValueError(why)


async def asked(client, messages, tell):
    """One request with its tries, and what the model said; `tell` gets its text piece by piece."""
    body = {"model": "claude-sonnet-4-6", "max_tokens": 999, "stream": True, "tools": [SHELL], "messages": messages}
    headers = {"x-api-key": "k", "anthropic-version": "2023-06-01"}
    for attempt in range(3):
        text, calls, whole = "", [], False
        try:
            async with client.post(f"{LLM}/v1/messages", json=body, headers=headers) as reply:
                if reply.status in (429, 500, 502, 503, 529) and attempt < 2:
                    await asyncio.sleep(min(float(reply.headers.get("retry-after", 0.3)), 3))
                    continue
                if reply.status != 200:
                    failed(f"HTTP {reply.status}: {await reply.text()}")
                async for line in reply.content:
                    event = json.loads(line[6:]) if line.startswith(b"data: ") else {"type": ""}
                    if event["type"] == "error":
                        failed(event["error"]["message"])
                    if event["type"] == "content_block_start" and event["content_block"]["type"] == "tool_use":
                        calls.append({**event["content_block"], "input": ""})
                    delta = event.get("delta", {})
                    if delta.get("type") == "text_delta":
                        text += delta["text"]
                        await tell({"text": delta["text"]})
                    if delta.get("type") == "input_json_delta":
                        calls[-1]["input"] += delta["partial_json"]
                    whole = whole or event["type"] == "message_stop"
            if not whole:
                failed("the model's reply was cut off")
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as wrong:
            if attempt == 2 or text or str(wrong).startswith("HTTP"):
                raise ValueError(f"the model failed: {wrong or type(wrong).__name__}") from None
            await asyncio.sleep(0.3)
            continue
        for call in calls:
            call["input"] = json.loads(call["input"] or "{}")
        return text, calls
    failed("the model failed")


async def ran(command):
    process = await asyncio.create_subprocess_shell(
        command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    try:
        return (await asyncio.wait_for(process.communicate(), 20))[0].decode(errors="replace")[:20_000]
    finally:
        if process.returncode is None:
            process.kill()


async def answered(talk, message, tell):
    """One turn. What was said before a failure stays, and every call has its result."""
    talk.said.append({"who": "user", "text": message})
    messages = [*talk.messages, {"role": "user", "content": message}]
    timeout = aiohttp.ClientTimeout(total=30, sock_read=5)
    try:
        async with aiohttp.ClientSession(timeout=timeout) as client:
            for _ in range(20):
                text, calls = await asked(client, messages, tell)
                blocks = [*([{"type": "text", "text": text}] if text else []), *calls]
                if not blocks:
                    failed("the model said nothing")
                if not calls:
                    messages.append({"role": "assistant", "content": blocks})
                    talk.said.append({"who": "agent", "text": text})
                    talk.messages = messages
                    return
                outputs = [await ran(call["input"].get("command", "")) for call in calls]
                results = [
                    {"type": "tool_result", "tool_use_id": call["id"], "content": output or "(nothing)"}
                    for call, output in zip(calls, outputs, strict=True)
                ]
                messages += [{"role": "assistant", "content": blocks}, {"role": "user", "content": results}]
            failed("more than 20 rounds of tools: the limit is reached")
    except asyncio.CancelledError:
        note = "(stopped by its user)"
        if BUG != "stops-unseen":
            talk.said.append({"who": "agent", "text": note})
        talk.messages = [*messages, {"role": "assistant", "content": note}]
        raise
    except ValueError as wrong:
        talk.said.append({"who": "agent", "text": f"Error: {wrong}"})
        talk.messages = [*messages, {"role": "assistant", "content": f"(failed: {wrong})"}]
        raise
    finally:
        talk.keep()


class Service:
    def __init__(self):
        self.talks = {}

    def talk(self, request):
        name = request.match_info["id"]
        if name not in self.talks:
            self.talks[name] = Conversation(name)
        return self.talks[name]

    async def page(self, request):
        return web.Response(text=PAGE, content_type="text/html")

    async def kept(self, request):
        talk = self.talk(request)
        if BUG == "knows-nothing":
            talk.messages = []
        return web.json_response({"said": talk.said, "busy": talk.turn is not None})

    async def stop(self, request):
        if (turn := self.talk(request).turn) is not None:
            turn.cancel()
        return web.Response()

    async def answer(self, request):
        """The turn goes on where its page has gone."""
        talk, message, gone = self.talk(request), await request.text(), False
        if talk.turn is not None:
            return web.Response(text=json.dumps({"error": "Error: the conversation is busy"}) + "\n")
        stream = web.StreamResponse()
        await stream.prepare(request)

        async def tell(told):
            nonlocal gone
            try:
                if not gone:
                    await stream.write((json.dumps({**told, "at": time.time() * 1000}) + "\n").encode())
            except OSError:
                gone = True

        talk.turn = asyncio.create_task(answered(talk, message, tell))
        try:
            await asyncio.shield(asyncio.wait([talk.turn]))
            if talk.turn.cancelled():
                await tell({"end": "stopped"})
            elif wrong := talk.turn.exception():
                await tell({"error": f"Error: {wrong}"})
            else:
                await tell({"end": "done"})
        finally:
            if not (BUG == "stays-busy" and gone):
                talk.turn = None
        return stream


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    service, app = Service(), web.Application()
    app.add_routes(
        [
            web.get("/", service.page),
            web.get("/c/{id}", service.page),
            web.get("/api/{id}", service.kept),
            web.post("/api/{id}", service.answer),
            web.delete("/api/{id}", service.stop),
        ]
    )
    web.run_app(app, host="127.0.0.1", port=PORT, print=None)


main()
