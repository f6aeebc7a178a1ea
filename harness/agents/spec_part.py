"""What the parts of an agent spec share: the model, and checks of single values."""

import re
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from wedgehog.harness.agents.output_source import OutputSource
from wedgehog.harness.scenario.mistake import BadValueError

PositiveSeconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
SecondsOrNone = Annotated[float, Field(ge=0, allow_inf_nan=False)]
WholeNumber = Annotated[int, Field(ge=0)]
Argv = Annotated[tuple[str, ...], Field(min_length=1)]


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as bad:
        raise BadValueError(f"{text!r} is not a regular expression: {bad}") from None
    return text


def _source(text: str) -> str:
    OutputSource.parse(text)
    return text


RegularExpression = Annotated[str, AfterValidator(_pattern)]
Source = Annotated[str, AfterValidator(_source)]


class SpecPart(BaseModel):
    """A part of a spec; immutable, and unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, coerce_numbers_to_str=True)
