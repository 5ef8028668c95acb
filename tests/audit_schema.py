"""An `audit.json` against the JSON Schema that the package ships."""

import json
from importlib import resources

from jsonschema import Draft202012Validator

SHIPPED = json.loads((resources.files("surefoot.auditing") / "audit.schema.json").read_text())
VALIDATOR = Draft202012Validator(SHIPPED)


def faults(audit):
    """What is wrong with it, a line each."""
    return [f"{error.json_path}: {error.message[:200]}" for error in VALIDATOR.iter_errors(json.loads(json.dumps(audit)))]
