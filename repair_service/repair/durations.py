"""Durations as a reason or a report says them."""

UNITS = ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def said_duration(seconds: float) -> str:
    """A duration in its two greatest units: `2 d 3 h`, `90 s` as `1 min 30 s`, `0 s`."""
    if 0 < seconds < 1:
        return f"{seconds:.1g} s"
    left = max(0, round(seconds))
    parts: list[str] = []
    for size, unit in UNITS:
        count, left = divmod(left, size)
        if count or parts:
            parts.append(f"{count} {unit}")
    return " ".join([part for part in parts[:2] if not part.startswith("0")] or ["0 s"])
