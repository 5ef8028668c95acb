"""The processes that a process started, to kill one of them."""

import subprocess


def pids_below(parent):
    """Their numbers and command lines, and those of the processes that they started."""
    lines = subprocess.run(["ps", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True).stdout.splitlines()
    rows = [(int(pid), int(above), words) for pid, above, words in (line.split(None, 2) for line in lines)]
    found, grown = {parent}, True
    while grown:
        more = {pid for pid, above, _ in rows if above in found} - found
        found, grown = found | more, bool(more)
    return {pid: words for pid, _, words in rows if pid in found - {parent}}


def below(parent):
    return list(pids_below(parent).values())
