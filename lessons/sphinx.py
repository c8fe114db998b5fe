"""What pages look like: Sphinx's settings that docs/ and a single lesson have in common.

A page works from disk and asks for nothing elsewhere: no font, no script, formulas in MathML.
"""

from pathlib import Path

from minitx.analysis.pages import tokens

STYLE = Path(__file__).parent / "page"
SETTINGS = {
    "extensions": ["myst_nb", "minitx.lessons.mathml"],
    "html_theme": "furo",
    "html_theme_options": {
        "top_of_page_buttons": [],
        "light_css_variables": tokens.theme(tokens.LIGHT),
        "dark_css_variables": tokens.theme(tokens.DARK),
    },
    "html_static_path": [str(STYLE)],
    "html_css_files": ["page.css"],
    "html_js_files": [("page.js", {"defer": "defer"})],
    "html_math_renderer": "mathml",
    "html_show_sphinx": False,
    "html_show_copyright": False,
    "html_copy_source": False,
    "html_show_sourcelink": False,
    "myst_enable_extensions": ["colon_fence", "deflist", "dollarmath", "substitution"],
    "myst_heading_anchors": 3,
    "nb_execution_mode": "off",  # build.execute has done it
    "nb_merge_streams": True,  # what a cell prints is one box
    "nb_code_prompt_show": "Show the {type}",
    "nb_code_prompt_hide": "Hide the {type}",
}
CONF = (
    "from minitx.lessons.sphinx import SETTINGS\n\nglobals().update(SETTINGS)"  # a conf.py begins
)
STRICT = "--quiet", "--fail-on-warning", "--keep-going", "--no-color"
