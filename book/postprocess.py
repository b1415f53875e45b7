"""What is done to the built pages: icons, social card, the root page that offers both languages, the site map."""

import re
from pathlib import Path
from xml.sax.saxutils import escape

import numpy as np
import pydata_sphinx_theme
import yaml
from fontTools import subset
from fontTools.ttLib import TTFont
from matplotlib.figure import Figure

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT / "book" / "shared"
THEME = Path(pydata_sphinx_theme.__file__).parent / "theme" / "pydata_sphinx_theme" / "static"
FONT_AWESOME = THEME / "vendor" / "fontawesome"
ICON = re.compile(r"\bfa-([a-z0-9-]+)")
THEME_ICON = re.compile(r'--pst-icon-[a-z-]+:"(.)"')
PICTURE = re.compile(r'(<img (?![^>]*width=)[^>]*src="(_images/[^"]+\.svg)")')
NOT_A_PAGE = {"genindex", "search"}
LOCALES = {"en": "en", "zh": "zh-CN"}


def finish(site: Path) -> None:
    for lang in LOCALES:
        draw_icons(site / lang)
        reserve_space(site / lang)
        draw_card(site / lang / "_static" / "card.png")
    base = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["html"]["baseurl"]
    root = (SHARED / "root.html").read_text(encoding="utf-8").replace("{{ site }}", base)
    (site / "index.html").write_text(root, encoding="utf-8")
    (site / "sitemap.xml").write_text(sitemap(site, base), encoding="utf-8")
    (site / "robots.txt").write_text(f"User-agent: *\nAllow: /\nSitemap: {base}sitemap.xml\n", encoding="utf-8")


def draw_icons(book: Path) -> None:
    """Of Font Awesome's thousands of icons keep the few that the pages show, as a font of a few kilobytes."""
    text = "".join(path.read_text(encoding="utf-8") for path in book.glob("*.html"))
    text += "".join(path.read_text(encoding="utf-8") for path in book.glob("_static/scripts/*.js"))
    wanted = set(ICON.findall(text))
    sheet = next(FONT_AWESOME.glob("*/css/all.min.css")).read_text(encoding="utf-8")
    codes = {}
    for names, code in re.findall(r"((?:\.fa-[a-z0-9-]+:before,?)+)\{content:\"\\([0-9a-f]+)\"\}", sheet):
        for name in re.findall(r"\.fa-([a-z0-9-]+):before", names):
            if name in wanted:
                codes[name] = code
    font = TTFont(next(FONT_AWESOME.glob("*/webfonts/fa-solid-900.ttf")))
    options = subset.Options(flavor="woff", layout_features=[], notdef_outline=True)
    subsetter = subset.Subsetter(options)
    by_theme = THEME_ICON.findall((THEME / "styles" / "pydata-sphinx-theme.css").read_text(encoding="utf-8"))
    subsetter.populate(unicodes=[int(code, 16) for code in codes.values()], text="".join(by_theme))
    subsetter.subset(font)
    font.flavor = "woff"
    font.save(book / "_static" / "icons.woff")
    rules = [f'.fa-{name}::before {{ content: "\\{code}"; }}' for name, code in sorted(codes.items())]
    head = (SHARED / "icons.css").read_text(encoding="utf-8")
    (book / "_static" / "icons.css").write_text(head + "\n".join(rules) + "\n", encoding="utf-8")


def reserve_space(book: Path) -> None:
    """Tell each picture's size, so that nothing moves when it arrives."""
    for page in book.glob("*.html"):
        text = page.read_text(encoding="utf-8")
        sized = PICTURE.sub(lambda match: f"{match[1]} {_size(book / match[2])}", text)
        page.write_text(sized, encoding="utf-8")


def _size(picture: Path) -> str:
    width, height = re.search(r'<svg[^>]* width="([\d.]+)pt" height="([\d.]+)pt"', picture.read_text()[:2000]).groups()
    return f'width="{round(float(width) * 4 / 3)}" height="{round(float(height) * 4 / 3)}"'


def draw_card(path: Path) -> None:
    """The picture that is shown when somebody shares a page: a causal attention pattern and the course's name."""
    figure = Figure(figsize=(12, 6.3), facecolor="#0b3d6e")
    table = figure.add_axes([0.06, 0.14, 0.378, 0.72])
    i, j = np.indices((8, 8))
    weights = np.where(j <= i, np.exp(-0.5 * np.abs(i - j)) + 0.6 * (j == 0), np.nan)
    table.imshow(weights / np.nansum(weights, 1, keepdims=True), cmap="viridis")
    table.set_axis_off()
    figure.text(0.5, 0.56, "Attention", color="white", size=64, weight="bold")
    figure.text(0.5, 0.37, "by Hand", color="#ffd166", size=64, weight="bold")
    figure.savefig(path, dpi=100, facecolor=figure.get_facecolor())


def sitemap(site: Path, base: str) -> str:
    """Every page with its counterpart in the other language."""
    names = sorted(path.stem for path in (site / "en").glob("*.html") if path.stem not in NOT_A_PAGE)
    entries = []
    for name in names:
        address = {lang: escape(f"{base}{lang}/{'' if name == 'index' else name + '.html'}") for lang in LOCALES}
        links = "".join(
            f'\n    <xhtml:link rel="alternate" hreflang="{LOCALES[lang]}" href="{address[lang]}"/>' for lang in LOCALES
        )
        entries += [f"  <url>\n    <loc>{address[lang]}</loc>{links}\n  </url>" for lang in LOCALES]
    head = '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:xhtml="http://www.w3.org/1999/xhtml">'
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{head}\n' + "\n".join(entries) + "\n</urlset>\n"
