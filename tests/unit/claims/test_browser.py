"""The page in headless Chromium: filters, links, keyboard, a phone, light and dark, its load."""

from __future__ import annotations

import itertools
import shutil
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from reproduction.engine.page import render

from .book import DRAWINGS, PAPERS, book, image

webdriver = pytest.importorskip("selenium.webdriver")
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="needs chromium and chromium-driver"
)


@pytest.fixture(scope="module")
def driver() -> Iterator[Any]:
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield browser
    browser.quit()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("page")
    for name in ("entries/bombari2025", "entries/lin2025", "figures/bombari2025"):
        (folder / name).mkdir(parents=True)
    (folder / "figures/bombari2025/fig1.png").write_bytes(image())
    images = {("bombari2025", "fig1"): image()}
    for name, text in render(book(), papers=PAPERS, drawings=DRAWINGS, images=images):
        (folder / name).write_text(text)
    return (folder / "index.html").as_uri()


@pytest.fixture
def page(driver: Any, address: str) -> Iterator[Any]:
    show(driver, address)
    yield driver
    assert not driver.get_log("browser"), "the script complained"


def show(driver: Any, address: str, *, width: int = 1280, dark: bool = False) -> None:
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500},
    )
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
    driver.get("about:blank")
    driver.get(address)


def visible(driver: Any) -> list[str]:
    script = (
        "return [...document.querySelectorAll('li.entry')]"
        ".filter((item) => item.checkVisibility({contentVisibilityAuto: false}))"
        ".map((item) => item.id)"
    )
    return driver.execute_script(script)


def choose(driver: Any, name: str, value: str) -> None:
    driver.execute_script(
        "const field = document.forms[0].elements[arguments[0]]; field.value = arguments[1];"
        "field.dispatchEvent(new Event('input', {bubbles: true}));",
        name,
        value,
    )


def until(condition: Callable[[], Any]) -> Any:
    for _ in range(400):
        if found := condition():
            return found
        time.sleep(0.05)
    raise AssertionError("it did not happen within 20 s")


# The labels of a selection stand in one word.
WIDTH_WITH_LONG_NAMES = """
document.querySelectorAll('p').forEach((each) => each.append(' ' + 'max_of_the_data|'.repeat(20)));
return document.documentElement.scrollWidth;
"""
ALL = len(book().records) + len(book().findings)
# Pages that a reader meets, by their address beside the results.
PAPER = "entries/bombari2025"
PAGES = ("index.html", "gallery.html", f"{PAPER}/index.html", f"{PAPER}/noisy.html")


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("verdict", "unexpected", ["surprise"]),
        ("verdict", "broken", ["on-it"]),
        ("kind", "cross-check", ["route"]),
        ("kind", "finding", ["slip", "missing-factor", "missing-step"]),
        ("text", "as lambda_min d^(-1/2)", ["on-it"]),
        ("text", "λ", ["on-it"]),
        ("text", "nothing has this", []),
    ],
)
def test_a_filter_shows_what_matches_and_is_part_of_the_address(
    page: Any, name: str, value: str, expected: list[str]
) -> None:
    assert visible(page) == [], "the papers are folded"
    choose(page, name, value)
    assert [key.split("-", 1)[1] for key in visible(page)] == expected
    said = page.execute_script("return document.querySelector('output').value")
    assert said.startswith(f"{len(expected)} of {ALL}" if expected else "Nothing matches")
    there = page.current_url
    assert f"#?{name}=" in there
    show(page, there)
    assert [key.split("-", 1)[1] for key in visible(page)] == expected
    page.find_element("css selector", "button[type=reset]").click()
    until(lambda: visible(page) == [] and "#?" not in page.current_url)


def test_a_link_unfolds_what_it_points_to_even_if_it_was_filtered_out(page: Any) -> None:
    choose(page, "paper", "lin2025")
    page.execute_script("location.hash = '#bombari2025-on-it'")
    until(lambda: "bombari2025-on-it" in visible(page))
    covered = page.execute_script(
        "return document.querySelector('.filter').getBoundingClientRect().bottom"
        " - document.querySelector('#bombari2025-on-it').getBoundingClientRect().top"
    )
    assert covered <= 0, "the filters hide what the link leads to"


@pytest.mark.parametrize("name", PAGES)
def test_every_control_and_picture_has_a_name(page: Any, address: str, name: str) -> None:
    show(page, address.replace("index.html", name))
    nameless = page.execute_script(
        "return [...document.querySelectorAll('input, select, button, a, summary, svg, img')]"
        ".filter((item) => !(item.textContent.trim() || item.closest('label')?.textContent.trim()"
        " || item.getAttribute('aria-label') || item.alt)).map((item) => item.outerHTML)"
    )
    assert nameless == []
    levels = page.execute_script(
        "return [...document.querySelectorAll('h1, h2, h3, h4')].map((item) => +item.tagName[1])"
    )
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))


LEGIBLE = """
function channel(value) {
  value /= 255;
  return value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
}
function light(colour) {
  const [r, g, b] = colour.match(/[\\d.]+/g).map(Number);
  return 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
}
function behind(item) {
  for (; item; item = item.parentElement) {
    const colour = getComputedStyle(item).backgroundColor;
    if (!colour.includes("rgba")) return colour;
  }
  return getComputedStyle(document.body).backgroundColor;
}
const poor = [];
for (const item of document.querySelectorAll("p, td, th, dt, dd, a, li, .soft, .badge, .place")) {
  const one = light(getComputedStyle(item).color), other = light(behind(item));
  const contrast = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
  if (contrast < 4.5) poor.push([item.outerHTML.slice(0, 80), contrast]);
}
return poor;
"""


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("dark", [False, True])
def test_text_stands_out_in_light_and_dark(page: Any, address: str, dark: bool, name: str) -> None:
    show(page, address.replace("index.html", name), dark=dark)
    back = page.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert (int(back[4:].split(",")[0]) < 60) == dark
    assert page.execute_script(LEGIBLE) == []


@pytest.mark.parametrize("name", PAGES)
def test_a_phone_scrolls_down_only(page: Any, address: str, name: str) -> None:
    show(page, address.replace("index.html", name), width=390)
    page.execute_script("document.querySelectorAll('details').forEach((each) => each.open = true)")
    assert page.execute_script(WIDTH_WITH_LONG_NAMES) <= 390
