#!/bin/sh
# Audit a run and judge it by rules, in any CI: the exit code is 1 if a rule is broken, 2 if something cannot be used.
# RUN is the folder of the run, RULES a list of rules, DEPTH how much is measured.
set -eu
surefoot audit "${RUN:?}" --depth "${DEPTH:-standard}" --output audits/new --quiet
surefoot gate audits/new --rules "${RULES:?}" --format junit --output gate.xml --quiet || test $? -eq 1
surefoot gate audits/new --rules "$RULES"
