"""What all pages share: templates with autoescape, their style, and hashes for its policy."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from unflip._utils.version import __version__

_PACKAGE = "unflip.auditing.html"


def rendered(template: str, **content: Any) -> bytes:
    """Return a page.

    Parameters
    ----------
    template : str
        A template that extends layout.html.
    **content
        Its variables, besides the style and the version.
    """
    style = read_part("style.css")
    page = (
        environment()
        .get_template(template)
        .render(style=Markup(style), style_hash=content_hash(style), version=__version__, **content)
    )
    return page.encode("utf-8", "replace")


@cache
def environment() -> Environment:
    """Return the environment, which keeps the templates that it compiled."""
    return Environment(
        loader=PackageLoader(_PACKAGE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def read_part(name: str) -> str:
    """Return the content of a file of the folder of templates."""
    return resources.files(_PACKAGE).joinpath("templates", name).read_text(encoding="utf-8")


def content_hash(content: str) -> str:
    """Return the hash by which the content security policy allows a script or style."""
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
