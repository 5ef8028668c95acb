"""Models behind a process or an address: batches of pictures out, scores back as JSON, with timeouts, retries and limits.

One request is a JSON object, `{"png": [base64, ...]}` or `{"npy": base64}` (float32, count x height x width x channels, pixels
in [0, 1]); the answer is `{"logits": [[...], ...]}` or `{"probabilities": [[...], ...]}`, a row for each picture. A process
gets one request a line and answers with one line; an address gets it as the body of a POST."""

from __future__ import annotations

import base64
import io
import json
import logging
import math
import selectors
import shlex
import subprocess
import time
from dataclasses import dataclass, field
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, Request, build_opener

import numpy as np

from ..errors import SurefootError, require
from .arguments import check_sends

COMMAND = "cmd:"
ADDRESSES = ("http://", "https://")
LARGEST = 64 << 20  # bytes of an answer
AT_ONCE = 32  # pictures of a request
logger = logging.getLogger("surefoot")


class Unanswered(Exception):
    """No answer this time; the next attempt may get one."""


def is_remote_model(name: str) -> bool:
    return name.startswith((COMMAND, *ADDRESSES))


class NoRedirect(HTTPRedirectHandler):
    """The address that the user gave is asked, and no other."""

    def redirect_request(self, *_: Any) -> None:
        return None


@dataclass
class Asked:
    """A model that is asked by JSON; `returns` is what its first answer said."""

    name: str
    sends: str = "npy"
    timeout: float = 60.0
    retries: int = 2
    returns: str | None = None
    process: Any = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check_sends(self.sends)
        require(0 < self.timeout < math.inf, "timeout", "positive and finite", self.timeout)
        require(self.retries >= 0, "retries", "at least 0", self.retries)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "process": None}

    def __call__(self, pictures: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        parts = [pictures[start : start + AT_ONCE] for start in range(0, len(pictures), AT_ONCE)]
        return np.concatenate([self.ask(part) for part in parts])

    def ask(self, pictures: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """One request, again if there was no answer."""
        request = json.dumps({self.sends: as_png(pictures) if self.sends == "png" else as_npy(pictures)}).encode()
        for attempt in range(self.retries + 1):
            try:
                return self.read(self.exchange(request), len(pictures))
            except Unanswered as error:
                self.close()
                reason = str(error)
                if attempt < self.retries:
                    logger.info("%s did not answer (%s), once more", self.name, reason)
                    time.sleep(min(0.1 * 2**attempt, 2.0))
        raise SurefootError(f"'{self.name}' did not answer {self.retries + 1} times: {reason}.")

    def exchange(self, request: bytes) -> bytes:
        return self.by_process(request) if self.name.startswith(COMMAND) else self.by_address(request)

    def by_address(self, request: bytes) -> bytes:
        asked = Request(self.name, request, {"Content-Type": "application/json", "Accept": "application/json"})
        try:
            with build_opener(NoRedirect).open(asked, timeout=self.timeout) as answer:
                content: bytes = answer.read(LARGEST + 1)
        except HTTPError as error:
            if error.code >= 500:
                raise Unanswered(f"status {error.code}") from error
            raise SurefootError(f"'{self.name}' refuses the request with status {error.code}.") from error
        except (URLError, OSError) as error:
            raise Unanswered(str(getattr(error, "reason", error))) from error
        return content

    def by_process(self, request: bytes) -> bytes:
        if self.process is None or self.process.poll() is not None:
            words = shlex.split(self.name.removeprefix(COMMAND))
            try:
                self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
            except OSError as error:
                raise SurefootError(f"'{self.name}' cannot be started: {error}.") from error
        try:
            self.process.stdin.write(request + b"\n")
        except OSError as error:
            raise Unanswered("the process has ended") from error
        return self.read_line()

    def read_line(self) -> bytes:
        """One line of the process, within the time."""
        until, content = time.monotonic() + self.timeout, b""
        with selectors.DefaultSelector() as waiting:
            waiting.register(self.process.stdout, selectors.EVENT_READ)
            while not content.endswith(b"\n") and len(content) <= LARGEST:
                if not waiting.select(max(0.0, until - time.monotonic())):
                    raise Unanswered(f"nothing in {self.timeout:g} s")
                more = self.process.stdout.read(1 << 16)
                if not more:
                    raise Unanswered("the process has ended")
                content += more
        return content

    def read(self, content: bytes, count: int) -> np.ndarray[Any, Any]:
        """The scores in an answer, if it is one."""
        if len(content) > LARGEST:
            raise SurefootError(f"'{self.name}' answers with more than {LARGEST >> 20} MiB.")
        try:
            answer = json.loads(content)
        except ValueError as error:
            raise SurefootError(f"'{self.name}' must answer in JSON, got {content[:60]!r}.") from error
        kinds = [kind for kind in ("logits", "probabilities") if isinstance(answer, dict) and kind in answer]
        if not kinds:
            said = answer.get("error") if isinstance(answer, dict) else None
            raise SurefootError(f"'{self.name}' must answer with logits or probabilities, got {said or str(answer)[:60]!r}.")
        kind = self.returns if self.returns in kinds else kinds[0]
        if self.returns not in (None, kind):
            raise SurefootError(f"'{self.name}' answers with {kind}, and before with {self.returns}.")
        self.returns = kind
        try:
            scores = np.array(answer[kind], np.float32)
        except (ValueError, TypeError) as error:
            raise SurefootError(f"'{self.name}' must answer with rows of numbers: {error}.") from error
        require(scores.ndim == 2 and len(scores) == count, f"The answer of '{self.name}'", f"{count} rows", scores.shape)
        return scores

    def close(self) -> None:
        """End the process, if there is one."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process.stdin.close()
            self.process.stdout.close()
            self.process = None

    def __del__(self) -> None:
        if getattr(self, "process", None) is not None:
            self.close()


def as_npy(pictures: np.ndarray[Any, Any]) -> str:
    file = io.BytesIO()
    np.save(file, np.ascontiguousarray(pictures, np.float32), allow_pickle=False)
    return base64.b64encode(file.getvalue()).decode()


def as_png(pictures: np.ndarray[Any, Any]) -> list[str]:
    """Pixels in [0, 1] as PNG files of 8 bits."""
    from PIL import Image

    out = []
    for levels in np.clip(np.rint(pictures * 255), 0, 255).astype(np.uint8):
        file = io.BytesIO()
        Image.fromarray(levels[..., 0] if levels.shape[2] == 1 else levels).save(file, "PNG")
        out.append(base64.b64encode(file.getvalue()).decode())
    return out
