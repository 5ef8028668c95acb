"""The peak memory of a new process, as code to begin its script with."""

PEAK = '''
from pathlib import Path

def peak():
    """In GiB; getrusage would give a child that grew little the size of the parent that started it."""
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 2**20

'''
