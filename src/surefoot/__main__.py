"""`python -m surefoot`."""

from .cli.main import run

run()
