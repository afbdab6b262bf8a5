"""How the documentation site is built: `make docs` writes it to build/site, and it needs no network to be read."""

import importlib.util
from pathlib import Path

from docutils import nodes

from unflip import __version__

project = "unflip"
author = "The unflip developers"
copyright = author
release = version = __version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["README.md", "figures"]  # index.md includes the former
templates_path = ["_templates"]
highlight_language = "none"  # blocks of commands name no language; those of Python do

# Prose: MyST with $…$, and anchors as GitHub makes them, so that one link works in both places.
myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 4

# Reference: docstrings are numpydoc. A single backtick links where it names something, and is code elsewhere.
default_role = "py:obj"
nitpick_ignore_regex = [("py:obj", ".*")]
autodoc_typehints = "none"  # the docstrings say it in words
autodoc_member_order = "bysource"
numpydoc_show_class_members = False

# MathJax comes with the site, in one file that has its fonts in it.
_mathjax = Path(importlib.util.find_spec("sphinx-mathjax-offline").origin).parent / "static" / "mathjax" / "tex-svg.js"
mathjax_path = _mathjax.name
html_static_path = ["_static", str(_mathjax)]

html_theme = "furo"
html_title = f"unflip {version}"
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "within_subsection_order": "FileNameSortKey",
    "backreferences_dir": "api/generated",
    "doc_module": ("unflip",),
    "parallel": True,
    "abort_on_example_error": True,
    "write_computation_times": False,
    "min_reported_time": 600,
    "show_signature": False,
    "download_all_examples": False,
    "remove_config_comments": True,
}


def _without_last_blank_line(app, doctree):
    """Cut the blank line with which a doctest ends in the source; the page does not need it."""
    for block in doctree.findall(nodes.literal_block):
        block.rawsource = block.astext().rstrip()
        block[:] = [nodes.Text(block.rawsource)]


def setup(app):
    """Connect what the site changes of the pages."""
    app.connect("doctree-read", _without_last_blank_line)
