"""Model files as whoever wants to mislead would write them: nothing is checked but the checksum, which is right."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save as to_bytes

from tunefree.core import storage


def save(path: Path, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
    """Write arrays and a header, which may hold NaN."""
    text = json.dumps({"format": storage.FORMAT, **header, "digest": storage._BLANK})
    contiguous = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    blank = to_bytes(contiguous, {"tunefree": text})
    made = storage.new_digest()
    made.update(blank)
    digest = made.hexdigest().encode()
    path.write_bytes(
        blank.replace(storage._BEFORE_DIGEST + storage._BLANK.encode(), storage._BEFORE_DIGEST + digest, 1)
    )
