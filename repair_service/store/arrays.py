"""Lists of ids as parameters."""

from collections.abc import Iterable


def text_array(texts: Iterable[str]) -> str:
    """A `text[]` as Postgres reads it; for a parameter that the statement casts to that.

    psycopg writes a list element by element, which costs a scan as much as judging what it finds.
    """
    known = list(texts)
    joined = '","'.join(known)
    if "\\" in joined or joined.count('"') != 2 * max(0, len(known) - 1):
        joined = '","'.join(text.replace("\\", "\\\\").replace('"', '\\"') for text in known)
    return f'{{"{joined}"}}' if known else "{}"
