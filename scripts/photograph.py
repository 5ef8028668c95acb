"""A picture of a page as a person sees it: photograph.py PAGE.html OUT.png [--width 1200] [--height 900] [--dark] [--full]."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from base64 import b64decode
from pathlib import Path


def photograph(
    page: Path,
    out: Path,
    *,
    width: int = 1200,
    height: int = 900,
    dark: bool = False,
    full: bool = False,
    element: str | None = None,
) -> None:
    """Open the page in headless Chromium, draw every figure, and keep what is on the screen, all of it, or one figure."""
    from playwright.sync_api import sync_playwright

    names = (os.environ.get("SUREFOOT_BROWSER", ""), "chromium", "chromium-browser", "google-chrome")
    browser = next((found for name in names if name and (found := shutil.which(name))), None)
    if browser is None:
        sys.exit("No browser: make browser")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox", "--disable-gpu"])
        shown = chromium.new_page(viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light")
        shown.on("console", lambda message: print(message.text, file=sys.stderr))
        shown.on("pageerror", lambda error: print(error, file=sys.stderr))
        shown.goto(page.resolve().as_uri())
        shown.evaluate("surefoot.drawAll()")
        shown.wait_for_timeout(500)  # plotly fits its margins
        out.parent.mkdir(parents=True, exist_ok=True)
        if element is None:
            shown.screenshot(path=out, full_page=full)
        else:
            draw = "([id, width, height]) => Plotly.toImage(document.querySelector(id), {format: 'png', width, height})"
            picture: str = shown.evaluate(draw, [element, width, height])
            out.write_bytes(b64decode(picture.partition(",")[2]))
        chromium.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("page", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--width", type=int, default=1200)
    parser.add_argument("--height", type=int, default=900)
    parser.add_argument("--dark", action="store_true")
    parser.add_argument("--full", action="store_true")
    photograph(**vars(parser.parse_args()))
