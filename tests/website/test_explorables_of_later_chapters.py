"""Sparse hops, costs, flash tiles and the heads of a small model: driven by keyboard, compared with the reference."""

import contextlib
import itertools
import random

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode
from train_sentence_heads import ANIMALS, BRACKETS, LENGTH, WEIGHTS, read, sentence

from autograder.reference import ch14_sparse, ch15_linear, ch16_flash

PAGES = {
    "sparse-hops": "14_sparse",
    "cost-lengths": "15_linear",
    "flash-tiles": "16_flash",
    "sentence-heads": "12_theory",
}


@pytest.fixture(scope="module")
def start(open_page):
    """Start an explorable, on a page that is opened once for all its tests."""
    with contextlib.ExitStack() as stack:
        yield lambda name: Started(stack.enter_context(open_page(f"en/{PAGES[name]}.html")), name)


class Started:
    """An explorable in a browser: its state, and keyboard input."""

    def __init__(self, page, name):
        self.page, self.box = page, page.locator(f"figure:has(abh-{name})")
        self.tag = f"abh-{name}"
        self.box.scroll_into_view_if_needed()
        page.wait_for_selector(f"{self.tag}[data-started]")

    def press(self, control, *keys):
        control.focus()
        for key in keys:
            self.page.keyboard.press(key)

    def slide(self, label, *keys):
        self.press(self.box.get_by_label(label), *keys)

    def get(self, state: str):
        return self.page.evaluate(f"document.querySelector('{self.tag}').{state}")

    def tensor(self, state: str) -> torch.Tensor:
        return torch.tensor(self.get(state), dtype=torch.float64)


@pytest.fixture(scope="module")
def hops(start):
    return start("sparse-hops")


@pytest.fixture(scope="module")
def costs(start):
    return start("cost-lengths")


@pytest.fixture(scope="module")
def tiles(start):
    return start("flash-tiles")


@pytest.fixture(scope="module")
def heads(start):
    return start("sentence-heads")


def close(got, expected) -> None:
    torch.testing.assert_close(got, expected, rtol=0, atol=1e-6)


def layers_until_reached(mask):
    """For each pair, the first power of (mask or identity) in which it appears."""
    knows = torch.eye(len(mask), dtype=torch.bool)
    first = torch.where(knows, 0.0, torch.inf)
    for layer in range(1, len(mask)):
        knows = (mask | torch.eye(len(mask), dtype=torch.bool)).double() @ knows.double() > 0
        first = torch.where(knows & first.isinf(), layer, first)
    return first.double()


def test_the_hops_match_the_reference_for_every_pattern(hops):
    tokens = {"plain": [], "both ways": [0]}
    hops.slide("window w", "Home")
    for window in range(3):
        for star in ("plain", "sees all", "both ways"):
            hops.press(hops.box.get_by_label(star, exact=True), "Space")
            mask = torch.tensor(hops.get("mask"))
            close(hops.tensor("hops"), layers_until_reached(mask))
            expected = ch14_sparse.hops(mask)
            assert hops.get("needed") == (torch.inf if expected == -1 else expected)
            if star in tokens:
                assert torch.equal(mask, ch14_sparse.longformer_mask(17, window, tokens[star]))
        hops.slide("window w", "ArrowRight")


def test_random_keys_are_added_to_every_ordinary_row(hops):
    hops.slide("window w", "Home", "ArrowRight")
    hops.press(hops.box.get_by_label("both ways", exact=True), "Space")
    hops.slide("random keys r", "End")
    mask = torch.tensor(hops.get("mask"))
    further = mask & ~ch14_sparse.longformer_mask(17, 1, [0])
    assert further.sum(-1).tolist() == [0] + [2] * 16
    hops.slide("random keys r", "Home")


def test_arrow_keys_choose_a_pair_and_a_shortest_path_is_shown(hops):
    hops.slide("window w", "Home", "ArrowRight", "ArrowRight")
    hops.press(hops.box.get_by_label("plain", exact=True), "Space")
    first = hops.box.get_by_role("button").first
    hops.press(first, *["ArrowRight"] * 9, "ArrowDown", "Enter")
    way, mask = hops.get("path"), hops.get("mask")
    assert (way[0], way[-1], len(way) - 1) == (1, 9, hops.get("hops")[1][9])
    assert all(mask[here][there] for here, there in itertools.pairwise(way))
    assert " ← ".join(map(str, way)) in hops.box.inner_text()


class Largest(TorchDispatchMode):
    """The elements of the largest tensor made inside."""

    numel = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        self.numel = max(self.numel, *(t.untyped_storage().nbytes() // t.element_size() for t in tree_leaves(out)))
        return out


def softmax_attention(q, k, v):
    return torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, -1) @ v


def test_the_costs_match_a_flop_counter(costs):
    costs.slide("features r", "Home")
    costs.slide("length n", "Home")
    for keys in (["ArrowRight"], ["ArrowRight"] * 5, ["PageUp", "End"]):
        costs.slide("length n", *keys)
        costs.slide("features r", "ArrowRight", "ArrowRight")
        size = costs.get("sizes")
        q, k, v = (torch.empty(size["n"], size["d"], device="meta") for _ in range(3))
        W = torch.empty(size["r"], size["d"], device="meta")
        ways = {
            "table": lambda q=q, k=k, v=v: softmax_attention(q, k, v),
            "elu": lambda q=q, k=k, v=v: ch15_linear.linear_attention(q, k, v),
            "performer": lambda q=q, k=k, v=v, W=W: ch15_linear.performer(q, k, v, W),
        }
        for name, way in ways.items():
            with FlopCounterMode(display=False) as counter, Largest() as largest:
                way()
            assert costs.get("costs")[name] == [counter.get_total_flops(), largest.numel], (name, size)
    assert costs.get("sizes")["n"] == 131072


def test_the_crossings_are_the_first_lengths_where_the_table_costs_more(costs):
    for width in ("16", "128", "64"):
        costs.press(costs.box.get_by_label(width, exact=True), "Space")
        size = costs.get("sizes")
        d, r = size["d"], size["r"]
        assert d == int(width)
        for first, work in zip(costs.get("crossings"), (4 * d * d + 2 * d, 8 * r * d + 2 * r), strict=True):
            assert 4 * first * d > work >= 4 * (first - 1) * d


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("block", [1, 2, 4, 8])
def test_the_tiles_give_the_reference_result_and_the_expected_traffic(tiles, block, causal):
    tiles.press(tiles.box.get_by_label(f"{block} × {block}"), "Space")
    if tiles.box.get_by_label("causal").is_checked() != causal:
        tiles.press(tiles.box.get_by_label("causal"), "Space")
    assert tiles.get("moved") == 0
    tiles.slide("tiles done", "End")
    out, lse = ch16_flash.flash_forward(*map(tiles.tensor, "qkv"), block=block, causal=causal)
    rows = tiles.get("rows")
    sums = torch.tensor([row["l"] for row in rows], dtype=torch.float64)
    close(torch.tensor([row["o"] for row in rows], dtype=torch.float64) / sums[:, None], out)
    close(torch.tensor([row["m"] for row in rows], dtype=torch.float64) + sums.log(), lse)
    n, d, blocks = 8, 4, 8 // block
    visited = blocks * (blocks + 1) // 2 if causal else blocks**2
    assert tiles.get("moved") == tiles.get("total") == 2 * (2 * n * d + 2 * block * d * visited)
    assert tiles.get("plain") == 2 * (4 * n * n + 4 * n * d)


def test_the_running_statistics_match_the_keys_seen_so_far(tiles):
    tiles.press(tiles.box.get_by_label("2 × 2"), "Space")
    if tiles.box.get_by_label("causal").is_checked():
        tiles.press(tiles.box.get_by_label("causal"), "Space")
    tiles.press(
        tiles.box.get_by_role("button", name="Next tile"), *["Enter"] * 6
    )  # queries 2 and 3 have met keys 0 to 3
    q, k, v = map(tiles.tensor, "qkv")
    scores = q[2:4] @ k[:4].T / 2
    close(tiles.tensor("scores")[2:4, :4], scores)
    rows = tiles.get("rows")[2:4]
    close(torch.tensor([row["m"] for row in rows], dtype=torch.float64), scores.amax(-1))
    votes = (scores - scores.amax(-1, keepdim=True)).exp()
    close(torch.tensor([row["l"] for row in rows], dtype=torch.float64), votes.sum(-1))
    close(torch.tensor([row["o"] for row in rows], dtype=torch.float64), votes @ v[:4])
    assert tiles.get("rows")[5]["l"] == 0


def test_the_page_computes_the_same_weights_and_guesses_as_the_trained_model(heads):
    model = read()
    for keys in ((), ("⌫ last word", "⌫ last word", "horse", "Model, go on"), ("⌫ last word",) * 9 + ("[", "mouse")):
        for key in keys:
            heads.press(heads.box.get_by_role("button", name=key, exact=True), "Enter")
        with torch.no_grad():
            scores, maps = model(torch.tensor(heads.get("ids")))
        close(heads.tensor("maps"), torch.stack(maps))
        close(heads.tensor("chances"), torch.softmax(scores, -1))


def test_a_head_and_a_row_are_chosen_by_keyboard(heads):
    heads.press(heads.box.get_by_label("1 · 1"), "Space")
    heads.press(heads.box.locator("table button").first, "ArrowDown", "ArrowDown", "Enter")
    weights = heads.tensor("maps")[0, 0, 2]
    assert weights.argmax() == 1  # "runs" looks at "cat"
    assert f"«runs» looks at cat {weights[1]:.2f}" in heads.box.inner_text()


def test_the_small_model_has_learned_who_does_what_and_which_bracket_is_open():
    dice = random.Random("never trained on")
    sentences = [sentence(dice) for _ in range(100)]
    with torch.no_grad():
        guesses = read()(torch.tensor(sentences)[:, :LENGTH])[0]
    verbs, brackets = [], []
    for words, guessed in zip(sentences, guesses, strict=True):
        done = {}
        for (here, following), guess in zip(itertools.pairwise(words), guessed, strict=True):
            if here in ANIMALS:
                verbs += [guess.argmax().item() == following] if here in done else []
                done[here] = following
            if following in BRACKETS.values():
                brackets.append(bool(guess[following] > guess[sum(BRACKETS.values()) - following]))
    assert (len(verbs) > 100, len(brackets) > 50) == (True, True)
    assert min(sum(verbs) / len(verbs), sum(brackets) / len(brackets)) > 0.98
    assert WEIGHTS.stat().st_size < 20_000
