"""The call pattern of a damaged head: the same trouble again has the same pattern."""

import hashlib
import json
from collections.abc import Iterable

from repair_service.repair.verdict import Fault


def pattern_of(faults: Iterable[Fault]) -> str:
    """A digest of which tools are at fault, and how.

    Ids, counts and places are left out: a thread that breaks each time at the same tool breaks with
    new ids, further down the list, and with as many calls as the model made that time.

    Args:
        faults: The faults of one head.

    Returns:
        32 hex digits.
    """
    kinds = sorted({(fault.tool_name or "", fault.kind.value) for fault in faults})
    return hashlib.sha256(json.dumps(kinds).encode()).hexdigest()[:32]
