#!/bin/sh
# A browser for the tests of the page: the one that is here, or Debian's Chromium where it can be installed.
for name in chromium chromium-browser google-chrome; do
    if command -v "$name" > /dev/null; then
        echo "browser: $(command -v "$name")"
        exit 0
    fi
done
if command -v apt-get > /dev/null && [ "$(id -u)" = 0 ]; then
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium > /dev/null
    command -v chromium && exit 0
fi
echo "No browser: install chromium (on Debian: apt-get install chromium). Tests of the page are skipped without it." >&2
[ -z "$CI" ]
