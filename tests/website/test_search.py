"""Search finds the right page among the first two, in both languages."""

import json
import re

import pytest
from course_book import glossary_terms

WANTED = [  # Chinese, English, the pages that should be found
    ("注意力", "attention", {"03_scaled_dot_product", "01_from_recurrence_to_attention"}),
    ("注意力机制", "attention mechanism", {"glossary", "01_from_recurrence_to_attention", "03_scaled_dot_product"}),
    ("缩放点积注意力", "scaled dot-product attention", {"03_scaled_dot_product"}),
    ("多头注意力", "multi-head attention", {"09_multi_head"}),
    ("掩码", "mask", {"06_masks"}),
    ("因果掩码", "causal mask", {"06_masks"}),
    ("填充", "padding", {"06_masks"}),
    ("归一化", "normalise", {"05_softmax", "03_scaled_dot_product"}),
    ("权重矩阵", "weight matrix", {"glossary", "02_query_key_value", "03_scaled_dot_product"}),
    ("键", "key", {"02_query_key_value"}),
    ("温度", "temperature", {"05_softmax"}),
]


@pytest.mark.parametrize(("lang", "column"), [("zh", 0), ("en", 1)])
def test_at_least_ten_of_eleven_queries_find_their_page(visit, lang, column):
    answered, missed = 0, {}
    for row in WANTED:
        page = visit(f"{lang}/search.html?q={row[column]}")
        page.wait_for_function("document.querySelector('#search-results p.search-summary')?.innerText.match(/\\d/)")
        page.wait_for_timeout(300)
        said = page.inner_text("#search-results p.search-summary")
        assert bool(re.search("[一-鿿]", said)) == (lang == "zh"), said
        found = page.evaluate(
            "[...document.querySelectorAll('#search-results ul.search > li > a')].map(a => a.getAttribute('href'))"
        )
        first_two = list(
            dict.fromkeys(link.split("#")[0].split("?")[0].split("/")[-1].removesuffix(".html") for link in found)
        )[:2]
        if row[2] & set(first_two):
            answered += 1
        else:
            missed[row[column]] = first_two
        assert page.faults == []
    assert answered >= 10, missed


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_index_links_each_term_to_its_chapter_even_after_a_partial_build(site, lang):
    text = (site / lang / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(text[text.index("{") : text.rindex("}") + 1])
    taught = {term[lang].lower(): term["taught"] for term in glossary_terms() if term["taught"]}
    found = {term: {index["docnames"][page] for page, *_ in index["indexentries"].get(term, [])} for term in taught}
    assert {term: page for term, page in taught.items() if page not in found[term]} == {}
