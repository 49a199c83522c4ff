"""How Sphinx builds the site; `make docs` runs it."""

import sys
import urllib.error
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import reference_pages

import amt_stream

project = "amt_stream"
author = "the amt_stream contributors"
project_copyright = author
version = release = amt_stream.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.intersphinx",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["changes/+*", "paper/*", "unattended/*"]
default_role = "py:obj"  # a name in backticks in a docstring: a link if it has a page
highlight_language = "none"
nitpicky = False

myst_heading_anchors = 4  # the links of pages lead to headings, as on a forge

autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 80

html_theme = "furo"
html_title = "amt_stream"
html_favicon = "../apps/amt_monitor/icons/amt-monitor.svg"
html_show_copyright = False
html_show_sourcelink = False
html_static_path = ["static"]
html_css_files = ["site.css"]
html_extra_path = [str(reference_pages.write_live_meter())]
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#3b0f7a",
        "color-brand-content": "#0a66c2",
    },
    "dark_css_variables": {
        "color-brand-primary": "#c4a5ff",
        "color-brand-content": "#5aa9f0",
    },
}
linkcheck_anchors = False  # of pages that a script makes
linkcheck_ignore = [
    r"http://(localhost|127\.0\.0\.1|[\w.-]+\.local)\b.*"
]  # of the reader's computer
linkcheck_retries = 2

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "generated/gallery",
    "filename_pattern": r"/\d\d_",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "min_reported_time": 3600,
    "remove_config_comments": True,
    "show_signature": False,
    "write_computation_times": False,
}

INVENTORIES = {
    "python": "https://docs.python.org/3/",
    "numpy": "https://numpy.org/doc/stable/",
    "torch": "https://docs.pytorch.org/docs/stable/",
}


def reachable(address: str) -> bool:
    """Whether this computer can fetch what other projects' pages list."""
    try:
        with urllib.request.urlopen(address + "objects.inv", timeout=5):
            return True
    except (urllib.error.URLError, TimeoutError):
        print(f"{address} cannot be reached: its names are not linked")
        return False


intersphinx_mapping = {
    name: (address, None) for name, address in INVENTORIES.items() if reachable(address)
}


def setup(app):
    app.connect("builder-inited", reference_pages.write_pages)
    app.connect("build-finished", reference_pages.write_summary)
    app.connect("source-read", reference_pages.link_what_is_outside)
    app.connect("autodoc-process-docstring", reference_pages.to_restructured_text)
