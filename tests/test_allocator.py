import os
import subprocess
import sys

import pytest

from surefoot import allocator


def test_switch_leaves_glibc_alone(monkeypatch):
    monkeypatch.setenv(allocator.SWITCH, "system")
    monkeypatch.setattr(allocator, "set_thresholds", lambda size: 1 / 0)
    assert "SUREFOOT_ALLOCATOR=system" in allocator.keep_large_blocks()


def test_no_glibc_no_change(monkeypatch):
    monkeypatch.delenv(allocator.SWITCH, raising=False)
    monkeypatch.setattr(allocator.platform, "libc_ver", lambda: ("", ""))
    monkeypatch.setattr(allocator, "set_thresholds", lambda size: 1 / 0)
    assert allocator.keep_large_blocks() == "left to the system (not glibc)"


CODE = """
import resource, sys
from surefoot.allocator import keep_large_blocks
print(keep_large_blocks())
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    BLOCK
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
print(any(faults() < 100 for _ in range(int(sys.argv[1]))))  # the kernel may take pages back in between
"""


@pytest.mark.parametrize(
    "block", ["len(bytes([120]) * 2**26)", pytest.param("__import__('torch').ones(2**24).sum()", marks=pytest.mark.stress)]
)
def test_freed_blocks_stay_with_the_process(block):
    """Another 64 MiB, of bytes or of a tensor, cost no page faults once the memory of earlier ones is kept."""

    def lines(times, **environment):
        command = [sys.executable, "-c", CODE.replace("BLOCK", block), str(times)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, **environment})
        return done.stdout.split("\n")

    said, cheap = lines(60)[:2]
    if said == "large blocks are kept":
        assert cheap == "True"
        assert lines(5, SUREFOOT_ALLOCATOR="system")[1] == "False"
    else:
        assert said.startswith("left to the system")
