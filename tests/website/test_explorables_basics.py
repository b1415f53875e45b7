"""The softmax, the mask painter, multi-head attention and dropout: driven by keyboard, compared with the reference."""

import itertools
import math

import pytest
import torch

from autograder.reference import ch04_why_scale, ch06_masks, ch07_dropout, ch09_multi_head, ch14_sparse


@pytest.fixture
def play(visit):
    def begin(name, page):
        element = visit(f"en/{page}.html").locator(f"abh-{name}")
        element.scroll_into_view_if_needed()
        element.page.wait_for_selector(f"abh-{name}[data-started]")
        return element

    return begin


def state(element, *names) -> list[torch.Tensor]:
    found = element.evaluate("(el, names) => names.map((name) => el[name])", list(names))
    return [torch.tensor(value, dtype=torch.float64) for value in found]


def close(got, wanted):
    torch.testing.assert_close(got, wanted.double(), rtol=0, atol=1e-6)


def slide(slider, steps, start="Home"):
    slider.press(start)
    for _ in range(steps):
        slider.press("ArrowRight")


def test_the_weights_are_the_softmax_of_scores_over_divisor_and_temperature(play):
    element = play("softmax-temperature", "04_why_scale")
    directions = state(element, "scores")[0] / math.sqrt(64)  # the width at the start
    widths, temperatures = element.get_by_role("slider").all()
    for width, octaves, divide in [(64, 0, "1"), (1024, -3, "1"), (16, 1.5, "√"), (256, 3, "√")]:
        slide(widths, round(math.log(width, 4)))
        slide(temperatures, round(4 * (octaves + 3)))
        element.get_by_role("radio", name=divide).press("Space")
        scores, scaled, weights, entropy, slope = state(element, "scores", "scaled", "weights", "entropy", "slope")
        close(scores, directions * math.sqrt(width))
        close(scaled, scores / (math.sqrt(width) if divide == "√" else 1) / 2**octaves)
        close(weights, torch.softmax(scaled, -1))
        close(entropy, ch04_why_scale.entropy(weights))
        close(slope, torch.trace(torch.diag(weights) - torch.outer(weights, weights)))
        dead = ch04_why_scale.dead_rows(weights[None]) == 1
        assert ("Saturated" in element.locator(".abh-note").inner_text()) == dead


def test_the_fallback_of_the_softmax_shows_the_same_numbers(play, visit):
    directions = state(play("softmax-temperature", "04_why_scale"), "scores")[0] / math.sqrt(64)
    page = visit("en/04_why_scale.html", java_script_enabled=False)
    for row in page.locator("abh-softmax-temperature tbody tr").all():
        width, *told = [cell.inner_text() for cell in row.locator("td").all()]
        for cell, divisor in zip(told, (1, math.sqrt(int(width))), strict=True):
            weights = torch.softmax(directions * math.sqrt(int(width)) / divisor, -1)
            largest, heard = cell.removesuffix(" keys").split(", ")
            digits = len(largest.split(".")[1])
            assert largest == f"{weights.max():.{digits}f}"
            assert heard == f"{ch04_why_scale.entropy(weights).exp():.1f}"


def mask_of(element) -> torch.Tensor:
    return torch.tensor(element.evaluate("el => el.mask"))


def test_the_rules_draw_causal_padding_window_and_global_masks(play):
    element = play("mask-painter", "06_masks")
    padding, window, globally = element.get_by_role("slider").all()
    i, j = torch.arange(7)[:, None], torch.arange(7)
    causal = ch06_masks.causal_mask(7)
    real = ch06_masks.padding_mask(torch.tensor([5]), 7)[0, 0]
    near = ch14_sparse.longformer_mask(7, 2, [])
    reaching = ch14_sparse.longformer_mask(7, 2, [0])

    def drawn(wanted):
        assert torch.equal(mask_of(element), wanted.expand(7, 7))
        assert torch.equal(eval(element.evaluate("el => el.rule"), {"i": i, "j": j}).expand(7, 7), wanted.expand(7, 7))
        pressed = element.locator("button").evaluate_all("cells => cells.map(c => c.ariaPressed === 'true')")
        assert torch.equal(torch.tensor(pressed).view(7, 7), wanted.expand(7, 7))

    drawn(causal)
    slide(padding, 4)
    drawn(causal & real)
    slide(window, 2)
    drawn(causal & real & near)
    slide(globally, 1)
    drawn(causal & real & reaching)
    element.get_by_role("checkbox").press("Space")
    drawn(real & reaching)
    padding.press("End")
    drawn(reaching)


def test_cells_can_be_painted_by_keyboard_and_by_mouse(play):
    element = play("mask-painter", "06_masks")
    wanted = ch06_masks.causal_mask(7)
    element.get_by_role("button", name="query 0, key 0").focus()
    for key in ("ArrowDown", "ArrowRight", "ArrowRight", "Space"):
        element.page.keyboard.press(key)
    wanted[1, 2] = True
    assert torch.equal(mask_of(element), wanted)
    boxes = [element.get_by_role("button", name=f"query 0, key {j}").bounding_box() for j in (4, 5, 6)]
    for box, press in zip(boxes, (True, False, False), strict=True):
        element.page.mouse.move(box["x"] + 8, box["y"] + 8)
        if press:
            element.page.mouse.down()
    element.page.mouse.up()
    wanted[0, 4:] = True
    assert torch.equal(mask_of(element), wanted)
    element.get_by_role("button", name="query 6, key 0").click()
    wanted[6, 0] = False
    assert torch.equal(mask_of(element), wanted)


SPELLED = {"True": True, "False": False, "1": 1, "0": 0, "1.": 1.0, "0.": 0.0, "-inf": -math.inf}
SHAPES = [(1, 7), (7, 7), (1, 7, 7), (1, 1, 7, 7), (1, 1, 7, 7), (7, 7)]
SOURCES = ["key_padding", "keep_01", "keep_01", "sdpa_bool", "additive", "nn_mha_bool"]
NAMES = {"torch": torch, "math": math, "B": 1, "H": 1, "Lq": 7, "Lk": 7}


def choose(element, *dialects):
    for select, dialect in zip(element.get_by_role("combobox").all(), dialects, strict=True):
        select.select_option(index=dialect)


def tensor_of(entries, dialect) -> torch.Tensor:
    return torch.tensor([[SPELLED[entry] for entry in row] for row in entries]).reshape(SHAPES[dialect])


def test_the_shown_code_translates_each_mask_convention_into_each_other(play):
    element = play("mask-painter", "06_masks")
    slide(element.get_by_role("slider").first, 3)
    for causal in (True, False):
        if not causal:
            element.get_by_role("checkbox").press("Space")
        mask = mask_of(element)
        for source, target in itertools.permutations(range(6), 2):
            choose(element, source, target)
            written, translated, code = element.evaluate("el => [el.written ?? null, el.translated ?? null, el.code]")
            if causal and 0 in (source, target):  # one row for all queries cannot be causal
                assert (written if source == 0 else translated) is None
                assert code == ""
                continue
            m = tensor_of(written, source)
            ours = ch06_masks.adapt_mask(m, SOURCES[source])
            assert torch.equal(ours.expand(1, 1, 7, 7)[0, 0], mask)
            names = dict(NAMES, m=m)
            exec(code, names)
            assert torch.equal(names["m"], tensor_of(translated, target))


def test_misread_cells_are_counted(play):
    element = play("mask-painter", "06_masks")  # starts with the causal mask
    for source, target, wrong in [(3, 5, 21), (5, 2, 49), (4, 6, 49), (5, 6, 0), (2, 3, 0)]:
        choose(element, source - 1, target - 1)
        assert element.evaluate("el => el.misread") == wrong
        assert element.locator(".abh-from").count() == wrong


def test_the_six_steps_are_multi_head_attention(play):
    element = play("multi-head-steps", "09_multi_head")
    told = {
        name: torch.tensor(value, dtype=torch.float64) for name, value in element.evaluate("el => el.tensors").items()
    }
    x, *matrices = (told[name] for name in ("x", "Wq", "Wk", "Wv", "Wo"))
    out, weights = ch09_multi_head.multi_head_attention(*[x[None]] * 3, *matrices, num_heads=2)
    close(told["out"], out[0])
    for head in (0, 1):
        close(told[f"weights{head}"], weights[0, head])
        for name, matrix in zip("qkv", matrices, strict=False):
            close(told[f"{name}{head}"], ch09_multi_head.split_heads(x[None] @ matrix.T, 2)[0, head])
    close(told["merged"], torch.cat([told["head0"], told["head1"]], -1))


def test_a_number_highlights_the_row_and_column_it_was_computed_from(play):
    element = play("multi-head-steps", "09_multi_head")
    keyboard = element.page.keyboard

    def chosen():
        return element.evaluate("el => [el.chosen.name, el.chosen.i, el.chosen.j, el.chosen.from.map(String).sort()]")

    element.locator("table button").first.focus()  # step 2, q
    keyboard.press("ArrowDown")
    keyboard.press("ArrowRight")
    lit = [f"x,1,{k}" for k in range(4)] + [f"Wqᵀ,{k},1" for k in range(4)]
    assert chosen() == ["q", 1, 1, sorted(lit)]
    assert element.locator(".abh-from").count() == 8
    assert (
        element.locator(".abh-note")
        .inner_text()
        .startswith("q[1, 1] = x[1, :] @ Wqᵀ[:, 1] = 0·0 + 1·1 + −1·−1 + 1·0 = 2")
    )
    element.get_by_role("radio", name="2").press("ArrowRight")
    assert "q, k, v [1, 2, 3, 2]" in element.locator(".abh-heading").inner_text()
    element.locator("table button").nth(7).press("Enter")  # head 1
    assert chosen() == ["q1", 0, 1, ["q,0,3"]]
    element.get_by_role("radio", name="3").press("ArrowRight")
    element.locator("table").nth(3).locator("button").nth(4).press("Enter")
    assert chosen() == ["weights0", 1, 1, ["scores0,1,0", "scores0,1,1", "scores0,1,2"]]
    element.get_by_role("radio", name="4").press("ArrowRight")
    element.locator("table button").nth(3).press("Enter")
    assert chosen() == ["merged", 0, 3, ["head1,0,1"]]


def coins(seed):
    """mulberry32, as the element has it."""
    while True:
        seed = (seed + 0x6D2B79F5) % 2**32
        t = (seed ^ seed >> 15) * (seed | 1) % 2**32
        t = (t + (t ^ t >> 7) * (t | 61) ^ t) % 2**32
        yield (t ^ t >> 14) / 2**32


def test_dropout_and_its_mean_match_the_reference(play):
    element = play("weight-dropout", "07_dropout")
    tossed = torch.tensor(list(itertools.islice(coins(8), 25 * 102)), dtype=torch.float64).view(102, 5, 5)
    for steps in (0, 6, 10, 20):
        slide(element.get_by_role("slider"), steps)
        element.get_by_role("button", name="once").press("Enter")
        element.get_by_role("button", name="100").press("Enter")
        weights, dropped, mean, draws = state(element, "weights", "dropped", "mean", "draws")
        close(weights.sum(-1), torch.ones(5))
        assert torch.equal(weights, weights.tril())
        p = steps / 20
        wanted = ch07_dropout.surviving(weights.expand(102, 5, 5), tossed >= p, p)
        close(draws, torch.tensor(102))
        close(dropped, wanted[-1])
        close(mean, wanted.mean(0))


def test_eval_drops_nothing(play):
    element = play("weight-dropout", "07_dropout")
    element.get_by_role("radio", name="train").press("ArrowRight")
    element.get_by_role("button", name="100").press("Enter")
    weights, dropped, mean = state(element, "weights", "dropped", "mean")
    assert torch.equal(dropped, ch07_dropout.attention_dropout(weights, 0.3, training=False))
    close(mean, weights)
    assert element.locator(".abh-dropped").count() == 0
