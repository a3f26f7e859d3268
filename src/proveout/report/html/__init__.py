"""HTML: one file that needs nothing else, in which nothing of a log can run.

Every text reaches the page through the template's escaping. The page's own style and script are the only ones
that its content security policy lets in, by their SHA-256.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from proveout.domain.report import Report
from proveout.report.html.view import Limits, page

LARGEST = 1_000_000
LIMITS = (
    Limits(),
    Limits(all_points=4_000, series=120, items=60, excerpt=15),
    Limits(points=0, items=20, excerpt=5, steps=100),
    Limits(points=0, items=4, excerpt=1, steps=40),
)


def render(report: Report) -> str:
    """The report as a page below a megabyte; what does not fit is counted and left to report.json."""
    text = ""
    for limits in LIMITS:
        text = _template().render(page=page(report, limits), **_own())
        if len(text.encode()) < LARGEST:
            break
    return text


@cache
def _template() -> Template:
    environment = Environment(
        loader=PackageLoader("proveout.report", "html"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html.j2")


@cache
def _own() -> dict[str, str]:
    """The page's own style and script, and the policy that lets in nothing else."""
    style, script = _file("page.css"), _file("page.js")
    policy = "; ".join(
        (
            "default-src 'none'",
            f"style-src '{_digest(style)}'",
            f"script-src '{_digest(script)}'",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )
    return {"style": Markup(style), "script": Markup(script), "policy": policy}  # noqa: S704 - our own files


def _file(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
