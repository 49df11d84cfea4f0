"""The templates of made-up results, as the settings take them."""

import string

from pydantic import BaseModel, ConfigDict, Field, field_validator

from repair_service.repair.verdict import Placeholders


class PlaceholderSettings(BaseModel):
    """The templates of made-up results; `{tool}` and `{call_id}` stand for the call."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    interrupted: str = Placeholders().interrupted
    invalid: str = Placeholders().invalid
    by_tool: dict[str, str] = Field(default_factory=dict)

    @field_validator("interrupted", "invalid")
    @classmethod
    def _template(cls, text: str) -> str:
        return _template(text)

    @field_validator("by_tool")
    @classmethod
    def _templates(cls, texts: dict[str, str]) -> dict[str, str]:
        return {tool: _template(text) for tool, text in texts.items()}


def _template(text: str) -> str:
    """Check a placeholder template: some text, and no other field than the two."""
    if not text.strip():
        raise ValueError("a placeholder needs some text, since providers refuse an empty result")
    try:
        fields = {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}
        if unknown := sorted(fields - {"tool", "call_id"}):
            raise ValueError(
                f"it has the field {{{unknown[0]}}}, and knows {{tool}} and {{call_id}}"
            )
        text.format(tool="tool", call_id="id")
    except (ValueError, LookupError) as error:
        raise ValueError(f"the template cannot be used: {error}; for a brace write two") from None
    return text
