"""An example of a state machine: any order of messages and failures leaves a conversation that the provider accepts."""

import httpx
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

import wedgehog

SCRIPT = {
    "replies": [
        {"when": {"user": "look", "tool_results": 0}, "reply": [{"tool": "shell", "args": {"command": "ls"}}]},
        {"when": {"user": "busy"}, "error": {"status": 503}},
        {"reply": [{"text": "Yes."}]},
    ]
}


class Agent:
    """Your agent; `forgets` is the bug: after a failed message it keeps the call without its result."""

    def __init__(self, url: str, *, forgets: bool = False) -> None:
        self.url, self.forgets, self.messages = f"{url}/v1/chat/completions", forgets, []

    def say(self, text: str, tool_fails: bool = False) -> None:
        kept = list(self.messages)
        try:
            self.messages.append({"role": "user", "content": text})
            reply = self._ask()
            for call in reply.get("tool_calls", ()):
                if tool_fails:
                    raise RuntimeError("the tool failed")
                self.messages.append({"role": "tool", "tool_call_id": call["id"], "content": "a file"})
                reply = self._ask()
        except (httpx.HTTPStatusError, RuntimeError):
            if not self.forgets:
                self.messages = kept

    def _ask(self) -> dict:
        sent = httpx.post(
            self.url, json={"model": "m", "messages": self.messages}, headers={"authorization": "Bearer k"}
        )
        reply = sent.raise_for_status().json()["choices"][0]["message"]
        self.messages.append({key: value for key, value in reply.items() if value})
        return reply


class Conversations(RuleBasedStateMachine):
    """Hypothesis chooses the rules and their order, and shrinks what fails to the fewest messages."""

    forgets = False

    def __init__(self) -> None:
        super().__init__()
        self.llm = wedgehog.Provider(SCRIPT).__enter__()
        self.agent = Agent(self.llm.url, forgets=self.forgets)

    @rule()
    def asks(self) -> None:
        self.agent.say("Are you there?")

    @rule()
    def meets_a_busy_provider(self) -> None:
        self.agent.say("Are you busy?")

    @rule()
    def runs_a_tool(self) -> None:
        self.agent.say("Please look around.")

    @rule()
    def runs_a_tool_that_fails(self) -> None:
        self.agent.say("Please look around.", tool_fails=True)

    @invariant()
    def the_provider_refuses_no_history(self) -> None:
        refused = [entry["error"] for entry in self.llm.ledger() if entry["error"] and not entry["error"]["scripted"]]
        assert not refused, refused[0]["message"]

    def teardown(self) -> None:
        self.llm.__exit__(None, None, None)


TestConversations = Conversations.TestCase
