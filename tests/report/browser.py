"""A real Chromium, without a window, that tells what went wrong in a page."""

from __future__ import annotations

import base64
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)


@contextmanager
def chromium() -> Iterator[webdriver.Chrome]:
    """A browser with a profile of its own; skips where none is installed, but never in CI."""
    driver = shutil.which("chromedriver")
    if driver is None or shutil.which("chromium") is None:
        if os.environ.get("CI"):
            pytest.fail("chromium and chromium-driver are needed here")
        pytest.skip("needs chromium and chromium-driver")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        options = webdriver.ChromeOptions()
        for flag in (*FLAGS, f"--user-data-dir={profile}", "--window-size=1200,900"):
            options.add_argument(flag)
        options.binary_location = str(shutil.which("chromium"))
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        browser = webdriver.Chrome(options=options, service=Service(driver))
        try:
            yield browser
        finally:
            browser.quit()


def complaints(browser: webdriver.Chrome) -> list[str]:
    """Console messages since the last call: script errors, and what the page's own policy refused."""
    return [entry["message"] for entry in browser.get_log("browser")]


def picture(browser: webdriver.Chrome, path: Path, theme: str, width: int) -> None:
    """Write the whole page as PNG, in the light or dark theme, at a width in CSS pixels."""
    look(browser, theme, width)
    height = browser.execute_script("return document.documentElement.scrollHeight")
    look(browser, theme, width, height)
    shot = browser.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True})
    path.write_bytes(base64.b64decode(shot["data"]))


def look(browser: webdriver.Chrome, theme: str, width: int, height: int = 900) -> None:
    """Show pages in the light or dark theme, in a window of this size."""
    media = {"features": [{"name": "prefers-color-scheme", "value": theme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
