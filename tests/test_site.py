"""The documentation site: it builds without a warning, its search knows every public name, and its pages fetch nothing."""

import json
import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import surefoot as sf

ROOT = Path(__file__).parent.parent
FETCHED = re.compile(r"""(?:<(?:script|img|iframe|source)\b[^>]*\bsrc|<link\b[^>]*\bhref)=["']?(?:https?:)?//""", flags=re.I)
PACKAGES = ["attacks", "calibration", "corruptions", "geometry", "objectives", "ood", "views"]
OWN = ("file:", "data:", "blob:")
SIDEWAYS = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
BRIGHTNESS = """[document.body, document.documentElement].map(one => getComputedStyle(one).backgroundColor)
    .map(colour => colour.match(/[0-9.]+/g).map(Number)).filter(parts => parts.length == 3 || parts[3] > 0)
    .map(parts => (parts[0] + parts[1] + parts[2]) / 3)[0] ?? 255"""
SEARCHED = ["load_data", "cross_fit_temperature", "MaCSAugMix"]


@pytest.fixture(scope="module")
def site(once):
    def build(folder):
        command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
        env = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
        done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert "WARNING" not in done.stderr

    return once("site", build)


def test_search_finds_every_public_name(site):
    index = json.loads((site / "search" / "search_index.json").read_text())
    entries = {entry["location"]: entry["title"] for entry in index["docs"]}
    separator = re.compile(index["config"]["separator"])
    assert set(PACKAGES) < set(sf.__all__)
    names = {f"surefoot.{name}": "surefoot" for name in sf.__all__ if name not in PACKAGES}
    names |= {f"surefoot.{room}.{name}": room for room in PACKAGES for name in import_module(f"surefoot.{room}").__all__}
    missing = [name for name, page in names.items() if f"api/{page}.html#{name}" not in entries]
    assert missing == []
    for name, page in names.items():
        assert name.rpartition(".")[2] in separator.split(entries[f"api/{page}.html#{name}"]), name
    assert all(f"surefoot.{room}" == entries[f"api/{room}.html"] for room in PACKAGES)


def test_built_pages_fetch_nothing(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 30
    assert FETCHED.search('<script async src="https://example.org/a.js">')
    assert FETCHED.search("<link rel=stylesheet href=//example.org/a.css>")
    for page in pages:
        text = re.sub(r'<link rel="canonical"[^>]*>', "", page.read_text())
        assert not FETCHED.search(text), page.name
        assert 'class="mermaid"' not in text, page.name  # which the theme would fetch a script for
    for style in site.rglob("*.css"):
        assert not re.search(r"url\([\"']?(?:https?:)?//|@import", style.read_text()), style.name


@pytest.mark.parametrize(
    ("width", "scheme"),
    [
        *((1280, "light"), (390, "dark")),
        *(pytest.param(*each, marks=pytest.mark.stress) for each in ((1280, "dark"), (390, "light"))),
    ],
)
def test_pages_on_a_desk_and_a_phone_light_and_dark(site, browser, width, scheme):
    """Start page, API page, tutorial, live report by its link: no sideways scroll, no error, nothing fetched."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page, troubles = context.new_page(), []
    page.set_default_timeout(60_000)
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("console", lambda said: troubles.append(said.text) if said.type == "error" else None)
    page.on("request", lambda sent: None if sent.url.startswith(OWN) else troubles.append(sent.url))
    for name in ("index", "api/objectives", "tutorials/audit-a-model", "live-report"):
        page.goto((site / f"{name}.html").as_uri())
        assert page.evaluate(SIDEWAYS) <= 0, name
        assert (page.evaluate(BRIGHTNESS) > 128) is (scheme == "light"), name
    page.locator("a", has_text="Open the report").click()
    page.locator("#figure-reliability").scroll_into_view_if_needed()
    page.wait_for_selector("#figure-reliability[data-drawn] svg")
    assert page.url.endswith("live/report.html")
    assert page.evaluate(SIDEWAYS) <= 0
    assert (page.evaluate(BRIGHTNESS) > 128) is (scheme == "light")
    context.close()
    assert troubles == []


def test_search_from_disk_in_a_browser(site, browser):
    """Start page and an API page open from disk without trouble, and search finds names there."""
    troubles = []
    page = browser.new_page(viewport={"width": 390, "height": 800})
    page.set_default_timeout(60_000)
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("request", lambda sent: None if sent.url.startswith(OWN) else troubles.append(sent.url))
    page.goto((site / "index.html").as_uri())
    page.locator("label.md-header__button[for=__search]").click()
    for name in SEARCHED:
        page.locator("input.md-search__input").fill(name)
        page.locator("input.md-search__input").press("End")  # the theme looks at the field when a key goes up
        page.wait_for_selector(f".md-search-result__link[href$='.{name}']", state="attached")  # maybe below "more on this page"
    page.goto((site / "api" / "objectives.html").as_uri())
    assert page.locator("h2[id='surefoot.objectives.MaCS']").is_visible()
    page.close()
    assert troubles == []
