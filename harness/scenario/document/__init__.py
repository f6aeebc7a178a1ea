"""Hand-written files: YAML with line numbers, so that each mistake is one line with file, line and expectation.

    scenario = load(Path("stall.yaml")).into(Scenario)
    # or BadFileError: stall.yaml:12: unknown key 'turms' (did you mean 'turns'?)

Only plain data is read: no tag runs, keys are always text (`on:` is the key "on"), and of the unquoted words only true,
false and null are not text.
"""

from wedgehog.harness.scenario.document.errors import BadFileError, BadValueError, DocumentPath
from wedgehog.harness.scenario.document.reading import Document, load, read

__all__ = ["BadFileError", "BadValueError", "Document", "DocumentPath", "load", "read"]
