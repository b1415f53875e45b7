"""Build the site: `_build/site/en`, `_build/site/zh`, and a root page that offers both.

    python book/build.py [--site DIR]

Each language's configuration is derived from `_config.yml` and `_toc.yml`. A language whose sources have not changed is
not built again; a page whose code has not changed is not executed again, in either language.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import yaml
from postprocess import finish

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT / "book" / "shared"
LEFT_OUT = (
    "*.map",
    ".buildinfo",
    "objects.inv",
    "_sources",
    "fontawesome",
    "sphinx-thebe.*",
    "*.LICENSE.txt",
    "locales",
)
DRAWING = """\
c = get_config()
c.InlineBackend.figure_formats = {"svg"}
c.InlineBackend.rc = {"image.interpolation": "none", "image.composite_image": False}
"""
LANGUAGES = yaml.safe_load((SHARED / "languages.yml").read_text(encoding="utf-8"))


def build(site: Path, work: Path) -> bool:
    """Build what has changed. Says whether there was anything to do."""
    changed = False
    for lang in LANGUAGES:
        changed |= build_language(lang, site, work)
    if changed:
        finish(site)
    return changed


def build_language(lang: str, site: Path, work: Path) -> bool:
    stamp, digest = work / lang / "digest", _digest(lang)
    if stamp.is_file() and stamp.read_text() == digest and (site / lang / "index.html").is_file():
        return False
    stamp.unlink(missing_ok=True)
    work.joinpath(lang).mkdir(parents=True, exist_ok=True)
    config, toc = work / lang / "config.yml", work / lang / "toc.yml"
    _write(config, yaml.safe_dump(derived_config(lang, work), allow_unicode=True))
    _write(toc, yaml.safe_dump(derived_toc(lang), allow_unicode=True))
    command = [sys.executable, "-c", "from jupyter_book.cli.main import main; main()", "build", str(ROOT / "book" / lang), "--config", str(config),
               "--toc", str(toc), "--path-output", str(work / lang), "-n", "-W", "--keep-going"]  # fmt: skip
    shared = work / lang / "shared"
    if not shared.is_file() or shared.read_text() != _digest_of([SHARED]):
        command.append("--all")  # what every page is made with has changed
    environment = dict(
        os.environ,
        PYTHONWARNINGS="ignore::DeprecationWarning",
        OMP_NUM_THREADS="1",
        IPYTHONDIR=str(_drawing_profile(work)),
    )
    done = subprocess.run(command, env=environment, check=False)
    if done.returncode:
        raise SystemExit(f"book/{lang}: the build stopped; every message above is a fault in a page or a setting")
    shutil.rmtree(site / lang, ignore_errors=True)
    shutil.copytree(work / lang / "_build" / "html", site / lang, ignore=shutil.ignore_patterns(*LEFT_OUT))
    shared.write_text(_digest_of([SHARED]))
    stamp.write_text(digest)
    return True


def derived_config(lang: str, work: Path) -> dict:
    """The base configuration with what belongs to this language."""
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    language, base = LANGUAGES[lang], config["html"]["baseurl"]
    config["title"] = language["title"]
    config["html"]["baseurl"] = f"{base}{lang}/"
    config["repository"]["path_to_book"] = f"book/{lang}"
    config["execute"]["cache"] = str(work / "executed")
    config["bibtex_bibfiles"] = ["../shared/references.bib"]
    config["sphinx"]["local_extensions"] = {"course_book": str(SHARED)}
    settings = config["sphinx"]["config"]
    settings["language"] = language["locale"]
    settings["numfig_format"] = language["numfig"]
    settings["course_language"] = lang
    settings["course_site"] = base
    settings["course_repository"] = config["repository"]["url"]
    settings["course_branch"] = config["repository"]["branch"]
    settings["ogp_site_url"] = f"{base}{lang}/"
    settings["ogp_site_name"] = language["title"]
    settings["ogp_image"] = f"{base}{lang}/_static/card.png"
    settings["nb_code_prompt_show"] = language["words"]["show"]
    settings["nb_code_prompt_hide"] = language["words"]["hide"]
    settings["html_theme_options"]["search_bar_text"] = language["words"]["search_field"]
    settings["html_theme_options"]["logo"] = {"text": language["title"]}
    if lang == "zh":
        settings["html_search_language"] = "zh"
        settings["html_search_options"] = {"dict": str(_search_dictionary(work))}
    return config


def derived_toc(lang: str) -> dict:
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    for part in toc["parts"]:
        part["caption"] = LANGUAGES[lang]["captions"].get(part["caption"], part["caption"])
    return toc


def _search_dictionary(work: Path) -> Path:
    """The course's own words, so that the search index keeps them whole."""
    terms = tomllib.loads((SHARED / "glossary.toml").read_text(encoding="utf-8"))["term"]
    path = work / "words.txt"
    _write(path, "".join(f"{term['zh']} 100000\n" for term in terms))
    return path


def _drawing_profile(work: Path) -> Path:
    """Pictures as SVG: sharp on every screen, smaller than pixels, and a heat map no larger than its table."""
    profile = work / "ipython" / "profile_default"
    profile.mkdir(parents=True, exist_ok=True)
    _write(profile / "ipython_kernel_config.py", DRAWING)
    return work / "ipython"


def _digest(lang: str) -> str:
    """Equal as long as nothing that this language is made of has changed."""
    folders = [ROOT / "book" / lang, SHARED, ROOT / "exercises"]
    files = [ROOT / "_config.yml", ROOT / "_toc.yml", ROOT / "autograder" / "catalogue.toml"]
    return _digest_of([*folders, *files, *Path(__file__).parent.glob("*.py")])


def _digest_of(places: list[Path]) -> str:
    files = [path for place in places for path in (place.rglob("*") if place.is_dir() else [place])]
    kept = sorted(path for path in files if path.is_file() and "__pycache__" not in path.parts)
    digests = {str(path.relative_to(ROOT)): hashlib.sha256(path.read_bytes()).hexdigest() for path in kept}
    return hashlib.sha256(json.dumps(digests).encode()).hexdigest()


def _write(path: Path, text: str) -> None:
    """Only when it differs: Sphinx looks at the time of a file."""
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description="Build the site in both languages.")
    parser.add_argument("--site", type=Path, default=ROOT / "_build" / "site", help="where it goes")
    parser.add_argument("--work", type=Path, default=ROOT / "_build" / "book", help="where intermediate files stay")
    args = parser.parse_args()
    changed = build(args.site.resolve(), args.work.resolve())
    print(f"{args.site}: {'built' if changed else 'nothing to do'}")  # noqa: T201


if __name__ == "__main__":
    main()
