"""A run on the Hugging Face hub, `hf://owner/name` or `hf://owner/name@revision`, by way of huggingface_hub's cache.

Only the files of a run are fetched, none of which is code, and they are read by the rules for folders of other people.
"""

from __future__ import annotations

import re
from pathlib import Path

from ..errors import SurefootError

PREFIX = "hf://"
ADDRESS = re.compile(r"hf://(?P<name>\w[\w.-]*/\w[\w.-]*?)(?:@(?P<revision>[\w./-]+))?/?")


def fetched(address: str, files: list[str]) -> Path:
    """The folder in the cache that has these files of a run, as far as the run has them."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    match = ADDRESS.fullmatch(address)
    if match is None:
        raise SurefootError(f"A run on the hub is hf://OWNER/NAME or hf://OWNER/NAME@REVISION, got '{address}'.")
    try:
        return Path(snapshot_download(match["name"], revision=match["revision"], allow_patterns=files))
    except (LocalEntryNotFoundError, HfHubHTTPError, OSError, ValueError) as error:
        raise SurefootError(f"'{address}' cannot be read: {' '.join(str(error).split())[:300]}") from error
