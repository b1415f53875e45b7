"""The reference of chapter 17, compared with PyTorch, finite differences and numbers worked out by hand."""

import math

import pytest
import torch
from torch.nn import functional as F

from autograder.reference.ch17_applications import (
    AttentionPolicy,
    Forecaster,
    Recommender,
    attention_rollout,
    clip_logits,
    clip_loss,
    graph_attention,
    patchify,
)


@pytest.fixture
def draw():
    generator = torch.Generator().manual_seed(17)
    return lambda *shape: torch.randn(*shape, generator=generator, dtype=torch.float64)


@pytest.fixture(autouse=True)
def _same_weights():
    with torch.random.fork_rng():
        torch.manual_seed(17)
        yield


def test_patches_by_hand():
    image = torch.arange(8).view(1, 1, 2, 4)
    assert patchify(image, 2).tolist() == [[[0, 1, 4, 5], [2, 3, 6, 7]]]


def test_patches_match_unfold_and_a_convolution(draw):
    images, kernel = draw(2, 3, 6, 9), draw(5, 3, 3, 3)
    patches = patchify(images, 3)
    torch.testing.assert_close(patches, F.unfold(images, 3, stride=3).mT)
    torch.testing.assert_close(patches @ kernel.flatten(1).T, F.conv2d(images, kernel, stride=3).flatten(2).mT)


@pytest.mark.parametrize("shape", [(1, 1, 5, 4), (1, 1, 4, 5)])
def test_sizes_that_do_not_divide_are_refused(shape):
    with pytest.raises(ValueError, match="do not divide"):
        patchify(torch.zeros(shape), 2)


def test_logits_are_scaled_cosines(draw):
    images, texts = draw(3, 6), draw(5, 6)
    expected = 7 * F.cosine_similarity(images[:, None], texts[None], dim=-1)
    torch.testing.assert_close(clip_logits(images, texts, 7), expected)
    assert torch.autograd.gradcheck(clip_logits, (images.requires_grad_(), texts.requires_grad_(), 3.0))


def test_the_loss_is_the_mean_of_two_cross_entropies(draw):
    logits, target = draw(5, 5), torch.arange(5)
    expected = (F.cross_entropy(logits, target) + F.cross_entropy(logits.T, target)) / 2
    torch.testing.assert_close(clip_loss(logits), expected)
    assert clip_loss(torch.zeros(4, 4)).item() == pytest.approx(math.log(4))
    assert torch.autograd.gradcheck(clip_loss, logits.requires_grad_())


def test_a_graph_by_hand():
    """Node 0 sees node 1; all scores are 0, so it takes the mean. Node 1 is alone."""
    h, adj = torch.tensor([[2.0], [4.0]]), torch.tensor([[False, True], [False, False]])
    assert graph_attention(h, adj, torch.ones(1, 1), torch.zeros(2)).tolist() == [[3.0], [4.0]]


def test_a_graph_pair_by_pair(draw):
    h, W, a = draw(5, 3), draw(4, 3), draw(8)
    adj = draw(5, 5) > 0
    z, out = h @ W.T, []
    for i in range(5):
        seen = [j for j in range(5) if j == i or adj[i, j]]
        scores = torch.stack([F.leaky_relu(a @ torch.cat([z[i], z[j]]), 0.2) for j in seen])
        out.append(torch.softmax(scores, 0) @ z[seen])
    torch.testing.assert_close(graph_attention(h, adj, W, a), torch.stack(out))
    inputs = [x.requires_grad_() for x in (h, W, a)]
    assert torch.autograd.gradcheck(lambda h, W, a: graph_attention(h, adj, W, a), inputs)


def test_rollout_by_hand():
    swap = torch.tensor([[0.0, 1.0], [1.0, 0.0]]).expand(1, 3, 2, 2)
    assert attention_rollout([swap]).tolist() == [[[0.5, 0.5], [0.5, 0.5]]]
    blind = torch.zeros(1, 3, 2, 2)
    assert attention_rollout([blind]).tolist() == [[[1.0, 0.0], [0.0, 1.0]]]


def test_rollout_multiplies_from_the_left(draw):
    layers = [torch.softmax(draw(2, 3, 4, 4), -1) for _ in range(3)]
    a, b, c = (layer.mean(1) / 2 + torch.eye(4) / 2 for layer in layers)
    rollout = attention_rollout(layers)
    torch.testing.assert_close(rollout, c @ b @ a)
    torch.testing.assert_close(rollout.sum(-1), torch.ones(2, 4, dtype=torch.float64))


def test_padding_and_other_users_are_invisible():
    model = Recommender(9, 8, 2).double().eval()
    history = torch.tensor([[3, 1, 4], [5, 2, 6]])
    expected = model(history)
    torch.testing.assert_close(model(F.pad(history, (0, 4))), expected)
    torch.testing.assert_close(model(torch.tensor([[3, 1, 4], [7, 8, 1]]))[0], expected[0])
    assert not torch.allclose(model(torch.tensor([[1, 3, 4], [5, 2, 6]]))[0], expected[0])


def test_a_new_user_gets_finite_logits_and_gradients():
    model = Recommender(9, 8, 2)
    model(torch.tensor([[3, 1, 4], [0, 0, 0]])).sum().backward()
    assert all(weight.grad.isfinite().all() for weight in model.parameters())


@pytest.mark.parametrize(
    ("model", "inputs"),
    [
        (Recommender(9, 8, 2, max_len=4), torch.ones(2, 5, dtype=torch.long)),
        (Forecaster(3, 2, 8, 2, max_len=4), torch.zeros(2, 5, 3)),
        (AttentionPolicy(3, 2, 8, 2, max_len=4), torch.zeros(2, 5, 3)),
    ],
    ids=["Recommender", "Forecaster", "AttentionPolicy"],
)
def test_a_sequence_that_is_too_long_is_refused(model, inputs):
    assert model(inputs[:, :4]).isfinite().all()
    with pytest.raises(ValueError, match="only 4 positions"):
        model(inputs)


def test_a_forecast_depends_on_order_and_on_its_own_series_only(draw):
    model, x = Forecaster(3, 4, 8, 2).double().eval(), draw(2, 6, 3)
    forecast = model(x)
    assert forecast.shape == (2, 4, 3)
    assert not torch.allclose(model(x[:, [1, 0, 2, 3, 4, 5]]), forecast)
    torch.testing.assert_close(model(torch.stack([x[0], x[0]]))[0], forecast[0])


@pytest.mark.parametrize("states", [1, 3, 4, 16])
def test_a_policy_takes_any_number_of_state_variables_in_order(draw, states):
    model, history = AttentionPolicy(states, 5).double().eval(), draw(2, 6, states)
    assert model(history).shape == (2, 5)
    assert not torch.allclose(model(history[:, [1, 0, 2, 3, 4, 5]]), model(history))
