"""The command line: parse, call, compose, print."""
