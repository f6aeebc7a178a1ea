"""The session of one WebSocket of the Realtime API: its configuration and its conversation, which the server keeps.

session.update, conversation.item.create, … ─▶ take ─▶ session.updated, conversation.item.added, …
response.create ─▶ take ─▶ None ─▶ `asked`: the whole conversation as one request
"""

from collections.abc import Iterable
from typing import Any, Final

from wedgehog.fake_llm.dialects.base import Refusal
from wedgehog.fake_llm.dialects.openai_realtime import validate
from wedgehog.fake_llm.dialects.openai_realtime.names import CREATE, GA, ITEM, Names
from wedgehog.fake_llm.ids import made_up
from wedgehog.fake_llm.request import ConnectionMemory, Memory, mapped

ServerEvent = dict[str, Any]
_OF_SERVER: Final = ("id", "object", "status")


class RealtimeSession(ConnectionMemory):
    """What a connection knows; `number` makes its ids unique, `names` are those of the client's version of the API."""

    def __init__(self, session: Memory, model: str = "", number: int = 0, names: Names = GA) -> None:
        """Start with the provider's defaults and without items."""
        super().__init__(session)
        self.names, self.number, self._made = names, number, 0
        self.config: dict[str, Any] = names.session(self._made_up("sess"), model)
        self.items: list[dict[str, Any]] = []
        self.refusal: Refusal | None = None
        """Why the last message is refused."""
        self.last_response = ""
        self._last_said: list[str] = []

    def opening(self) -> ServerEvent:
        """Return the first event of a connection."""
        return self._event("session.created", session=self.config)

    def take(self, document: dict[str, Any] | None, *, strict: bool, overlaps: bool) -> list[ServerEvent] | None:
        """Obey a message of the client; None: it is a request for a reply, or it is refused.

        `overlaps`: it came while a reply was being sent. Unless `strict`, the result of an unknown call is kept.
        """
        self.refusal = None
        if document is None:
            return None
        self.refusal = next(validate.event(document, self.items, self.config, self.names), None)
        if self.refusal is None and overlaps and document["type"] == CREATE:
            self.refusal = validate.active(self.last_response)
        if self.refusal and self.refusal.pairing and not strict:
            self.refusal = None
        return None if self.refusal or document["type"] == CREATE else self._obeyed(document)

    def asked(self, document: dict[str, Any]) -> dict[str, Any]:
        """Return a request for a reply with all that the model reads; another message as it is."""
        if document.get("type") == ITEM:
            return self._whole(document, {}, [*self.items, mapped(document.get("item"))])
        if document.get("type") != CREATE:
            return document
        given = mapped(document.get("response"))
        items = given.get("input")
        return self._whole(document, given, self.items if items is None else validate.resolved(items, self.items))

    def said(self, response: str, items: list[dict[str, Any]], *, kept: bool) -> None:
        """Add the items of a reply to the conversation, unless it stands beside it."""
        self.keep_here(response, items)
        self.last_response, self._last_said = response, [item["id"] for item in items]
        if kept:
            self.items += items

    def forget_last(self) -> None:
        """Take the items of the last reply away: it failed."""
        self.items = [item for item in self.items if item["id"] not in self._last_said]

    def _whole(self, document: ServerEvent, given: dict[str, Any], items: Iterable[dict[str, Any]]) -> dict[str, Any]:
        names = self.names
        limit = given.get("max_output_tokens", self.config[names.limit])
        return {
            "type": document["type"],
            "event_id": document.get("event_id"),
            "model": self.config["model"],
            "instructions": given.get("instructions", self.config["instructions"]),
            "tools": given.get("tools", self.config["tools"]),
            names.modalities: given.get(names.modalities, self.config[names.modalities]),
            "max_output_tokens": limit,
            "metadata": given.get("metadata"),
            "conversation": given.get("conversation", "auto"),
            "input": [{name: it for name, it in item.items() if name not in _OF_SERVER} for item in items],
            "stream": True,
        }

    def _obeyed(self, document: dict[str, Any]) -> list[ServerEvent]:
        match document["type"]:
            case "session.update":
                changed = mapped(document["session"])
                self.config |= {name: given for name, given in changed.items() if name not in ("id", "object", "model")}
                return [self._event("session.updated", session=self.config)]
            case "conversation.item.create":
                return self._added(dict(document["item"]), document.get("previous_item_id"))
            case "conversation.item.delete":
                self.items = [item for item in self.items if item["id"] != document["item_id"]]
                return [self._event("conversation.item.deleted", item_id=document["item_id"])]
        (found,) = (item for item in self.items if item["id"] == document["item_id"])
        return [self._event("conversation.item.retrieved", item=found)]

    def _added(self, item: dict[str, Any], previous: str | None) -> list[ServerEvent]:
        item = {"id": self._made_up("item"), "object": "realtime.item", "status": "completed", **item}
        if item["type"] == "function_call":
            item = {"call_id": self._made_up("call"), **item}
        ids = [known["id"] for known in self.items]
        at = 0 if previous == "root" else ids.index(previous) + 1 if previous else len(ids)
        self.items.insert(at, item)
        before = ids[at - 1] if at else None
        return [self._event(name, previous_item_id=before, item=item) for name in self.names.added_and_done]

    def _event(self, kind: str, **fields: Any) -> ServerEvent:
        return {"type": kind, "event_id": self._made_up("event"), **fields}

    def _made_up(self, kind: str) -> str:
        self._made += 1
        return f"{kind}_{made_up(kind, 'connection', self.number, self._made, length=21)}"
