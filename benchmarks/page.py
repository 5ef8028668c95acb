"""The page of a large audit: a thousand classes and 50,000 images. Its size, and how long Chromium takes to draw it.

python benchmarks/page.py
"""

from __future__ import annotations

import base64
import os
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "report"))
from made_up import class_row, geometry_points, grid, made_up, number

from surefoot.report.page import write_page
from surefoot.report.sections.corruptions import FAMILIES

CLASSES, IMAGES, SHOWN, MISTAKES, STEPS = 1000, 50_000, 4, 24, 60
ROUNDS = 5
CLOCK = """() => new Promise((done) => {
    const finish = () => {
        const times = { "open and usable": performance.now() / 1000 };
        surefoot.draw("reliability");
        times["first figure drawn"] = performance.now() / 1000;
        surefoot.drawAll();
        times["all figures drawn, which a reader never waits for"] = performance.now() / 1000;
        done(times);
    };
    document.readyState === "loading" ? document.addEventListener("DOMContentLoaded", finish) : finish();
})"""
PICTURE = 6000  # bytes of a 112-pixel JPEG of a busy picture


def picture(draw: random.Random) -> str:
    """As many bytes as a picture has; what they show does not matter here."""
    return f"data:image/jpeg;base64,{base64.b64encode(draw.randbytes(PICTURE)).decode()}"


def large_audit() -> dict[str, Any]:
    """An audit as deep as one of ImageNet."""
    draw = random.Random(0)
    names = tuple(f"n{k:08d} some kind of animal" for k in range(CLASSES))
    audit = made_up("resnet50 on imagenet", names)
    audit["subject"]["images"] = IMAGES
    audit["classes"] = [class_row(name, draw.random(), 50, draw.choice(names)) for name in names]
    damages = [name for members in FAMILIES.values() for name in members]
    keys = [(name, severity) for name in damages for severity in range(1, 6)]
    measures = ("accuracy", "ece", "nll", "rms", "scaled_ece")
    audit["corruptions"]["cells"] = [
        {"name": name, "severity": s, "origin": "", **{key: number(draw.random()) for key in measures}} for name, s in keys
    ]
    pictures = {
        f"{name}/{s}": {"pictures": [picture(draw) for _ in range(SHOWN)], "answers": [[draw.randrange(CLASSES), 0.5]] * SHOWN}
        for name, s in keys
    }
    mistake = {"label": 1, "answer": 2, "confidence": 0.99}
    audit["points"] |= {
        "temperatures": grid(IMAGES, STEPS, (1.9,)),
        "feature_scales": grid(IMAGES, STEPS, seed=1),
        "mistakes": [{**mistake, "index": k, "picture": picture(draw)} for k in range(MISTAKES)],
        "examples": {"labels": [0] * SHOWN, "clean": [picture(draw) for _ in range(SHOWN)], "cells": pictures},
        "geometry": geometry_points(2000),
    }
    return audit


def seconds_to_draw(page: Path) -> dict[str, float]:
    """Seconds from the start, the best of a few rounds."""
    from playwright.sync_api import sync_playwright

    names = (os.environ.get("SUREFOOT_BROWSER", ""), "chromium", "chromium-browser", "google-chrome")
    browser = next((found for name in names if name and (found := shutil.which(name))), None)
    if browser is None:
        sys.exit("No browser: make browser")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox", "--disable-gpu"])
        rounds = []
        for _ in range(ROUNDS):
            shown = chromium.new_page(viewport={"width": 1200, "height": 900})
            shown.goto(page.as_uri(), wait_until="commit")
            rounds.append(shown.evaluate(CLOCK))
            shown.close()
        chromium.close()
    return {name: min(each[name] for each in rounds) for name in rounds[0]}


if __name__ == "__main__":
    audit = large_audit()
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        page = write_page(Path(folder) / "report.html", [audit])
        size = f"{page.stat().st_size / 1e6:.1f} MB with the script (promise: below 15)"
        print(f"written in {time.perf_counter() - start:.2f} s, {size}")
        for name, seconds in seconds_to_draw(page).items():
            print(f"{name}: {seconds:.2f} s")
