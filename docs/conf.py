"""Sphinx configuration: `make docs` writes the site to build/site; it works offline."""

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
exclude_patterns = ["README.md", "figures"]  # index.md includes README.md
templates_path = ["_templates"]
highlight_language = "none"  # only Python blocks name their language

# MyST with $…$, and heading anchors like GitHub's, so that links work in both places.
myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 4

# Docstrings are numpydoc. Single backticks link to a name if it exists, and are code otherwise.
default_role = "py:obj"
nitpick_ignore_regex = [("py:obj", ".*")]
autodoc_typehints = "none"  # the docstrings describe the types
autodoc_member_order = "bysource"
numpydoc_show_class_members = False

# MathJax is part of the site: one file that contains its fonts.
_mathjax = (
    Path(importlib.util.find_spec("sphinx-mathjax-offline").origin).parent
    / "static"
    / "mathjax"
    / "tex-svg.js"
)
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
    """Remove the blank line at the end of doctest blocks."""
    for block in doctree.findall(nodes.literal_block):
        block.rawsource = block.astext().rstrip()
        block[:] = [nodes.Text(block.rawsource)]


# What people search for, and the page that the search is to list first.
_SEARCHED = {
    "command_line": ["CSV", "Excel", "Parquet"],
    "how_to/dataframes": ["missing values", "DataFrames", "categories"],
    "how_to/missing_labels": ["missing labels", "unlabelled rows"],
    "coming_from_cleanlab": ["cleanlab"],
    "images": ["images"],
    "labelling_tools": ["Label Studio", "Argilla", "Hugging Face"],
    "notebooks": ["notebook", "Jupyter"],
}


def _with_search_terms(app, docname, source):
    """Add main index entries below the title: the search ranks them highest."""
    terms = ", ".join(f"! {term}" for term in _SEARCHED.get(docname, []))
    if terms:
        title, _, rest = source[0].partition("\n")
        source[0] = f"{title}\n\n```{{index}} {terms}\n```\n{rest}"


def setup(app):
    """Connect the changes of the pages to Sphinx events."""
    app.connect("source-read", _with_search_terms)
    app.connect("doctree-read", _without_last_blank_line)
