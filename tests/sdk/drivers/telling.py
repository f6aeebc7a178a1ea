"""What the Python drivers share: the questions, and how they tell what an SDK made of the answers.

A driver finds the address of a fake provider in FAKE_URL, and prints one JSON object per case.
"""

import json
import os
import traceback

MODEL = "model-a"
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
RESULTS = {"call": "21 °C 👩‍🚀"}
STATUSES = (401, 404, 429, 500, 529)


def url() -> str:
    return os.environ["FAKE_URL"]


def tell(driver) -> None:
    """Ask everything of a driver: `ask(said, stream)`, `second_turn(stream)`, `fail(said, stream)`, `models()`."""
    cases = {"models": driver.models}
    for stream, how in ((False, "whole"), (True, "streamed")):
        for said in ("text", "tool", "tools"):
            cases[f"{said}, {how}"] = lambda said=said, stream=stream: driver.ask(said, stream)
        cases[f"second turn, {how}"] = lambda stream=stream: driver.second_turn(stream)
        for status in STATUSES:
            cases[f"error {status}, {how}"] = lambda status=status, stream=stream: driver.fail(str(status), stream)
    for more in getattr(driver, "MORE", ()):
        cases[more] = getattr(driver, more.replace(" ", "_"))
    for case, ask in cases.items():
        try:
            told = {"told": ask()}
        except Exception:
            told = {"failed": traceback.format_exc()}
        print(json.dumps({"case": case, **told}), flush=True)


def error(raised, status, message, retry_after=None):
    return {"raised": type(raised).__name__, "status": status, "message": message, "retry_after": retry_after}
