"""The blobs of the corpus, without a database."""

import gzip
from collections.abc import Iterator

from tests.corpus.loader import END, HERE


def stored(version: str) -> Iterator[tuple[str, str, bytes]]:
    """Channel, serialization type and bytes of all blobs and writes of one version's rows."""
    with gzip.open(HERE / f"{version}.copy.gz", "rt", encoding="utf-8", newline="\n") as lines:
        for line in lines:
            columns = line[line.index("(") + 1 : line.index(")")].replace(" ", "").split(",")
            for row in iter(lambda: next(lines), END):
                fields = dict(zip(columns, row.rstrip("\n").split("\t"), strict=True))
                blob = fields.get("blob", "\\N")
                if blob != "\\N":
                    yield fields["channel"], fields["type"], bytes.fromhex(blob.lstrip("\\x"))
