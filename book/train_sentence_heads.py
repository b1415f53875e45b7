"""Train the small model of the explorable `sentence-heads` and write its weights where the page finds them.

    python book/train_sentence_heads.py

Half a minute on one core. The model reads sentences of a made-up language, word by word, and guesses the next word:

    ^ cat runs dog sings ( fish swims [ cat runs ] dog sings ) fish swims

Within a sentence an animal always does the same thing, and brackets close in the order that nesting demands. Nothing else can
be guessed. Two layers of two heads, attention only: no feed-forward layers, no norms; a learned number for each distance
says how near a key is. Towards the end of the training scattered weights cost a little, which makes the heads easy to read.
"""

import base64
import json
import math
import random
import sys
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

WEIGHTS = Path(__file__).parent / "shared" / "static" / "explorables" / "sentence-heads.json"
ANIMALS, VERBS, BRACKETS = range(1, 7), range(7, 13), {13: 14, 15: 16}  # 0 is the start; an opener and what closes it
LENGTH, WIDTH, HEADS, LAYERS = 16, 24, 2, 2
UNIT = 1 / 32  # weights are shipped as whole numbers of bytes, in this unit
STEPS, BATCH, TIDINESS = 2000, 128, 0.03


def sentence(dice: random.Random) -> list[int]:
    """Of `LENGTH` + 1 words, the last of which nobody has to read."""
    animals = dice.sample(ANIMALS, 5)
    verb_of = {animal: dice.choice(VERBS) for animal in animals}
    words, must_close = [0], []
    while len(words) <= LENGTH:
        luck = dice.random()
        if luck < 0.25 and len(must_close) < 2:
            words.append(dice.choice(list(BRACKETS)))
            must_close.append(BRACKETS[words[-1]])
        elif luck < 0.5 and must_close and words[-1] not in BRACKETS:
            words.append(must_close.pop())
        else:
            animal = dice.choice(animals)
            words += [animal, verb_of[animal]]
    return words[: LENGTH + 1]


class Model(nn.Module):
    """Words (..., n) to scores of the next word (..., n, 17), and the weights of each layer (..., heads, n, n)."""

    def __init__(self):
        super().__init__()
        self.words = nn.Parameter(0.3 * torch.randn(17, WIDTH))
        self.near = nn.Parameter(torch.zeros(LAYERS, HEADS, LENGTH))
        self.layers = nn.Parameter(torch.randn(LAYERS, 4, WIDTH, WIDTH) / math.sqrt(WIDTH))  # W_Q, W_K, W_V, W_O
        self.guess = nn.Parameter(torch.randn(WIDTH, 17) / math.sqrt(WIDTH))

    def forward(self, ids: Tensor) -> tuple[Tensor, list[Tensor]]:
        places = torch.arange(ids.shape[-1])
        gap = places[:, None] - places
        x, maps = self.words[ids], []
        for near, (w_q, w_k, w_v, w_o) in zip(self.near, self.layers, strict=True):
            q, k, v = ((x @ w).unflatten(-1, (HEADS, -1)).transpose(-2, -3) for w in (w_q, w_k, w_v))
            scores = q @ k.mT / math.sqrt(q.shape[-1]) + near[:, gap.clamp(min=0)]
            maps.append(torch.softmax(scores.masked_fill(gap < 0, -math.inf), -1))
            x = x + (maps[-1] @ v).transpose(-2, -3).flatten(-2) @ w_o
        return x @ self.guess, maps


def train(seed: int = 0) -> Model:
    torch.manual_seed(seed)
    dice = random.Random(seed)
    corpus = torch.tensor([sentence(dice) for _ in range(10_000)])
    model = Model()
    optimiser = torch.optim.Adam(model.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 1e-2, total_steps=STEPS)
    for step in range(STEPS):
        some = corpus[torch.randint(len(corpus), (BATCH,))]
        scores, maps = model(some[:, :-1])
        loss = functional.cross_entropy(scores.flatten(0, 1), some[:, 1:].flatten())
        scattered = sum(-(weights * (weights + 1e-9).log()).sum(-1).mean() for weights in maps)
        optimiser.zero_grad()
        (loss + TIDINESS * max(0.0, 3 * step / STEPS - 2) * scattered).backward()
        optimiser.step()
        schedule.step()
        if step % 200 == 199:
            sys.stdout.write(f"{step + 1:5d}  loss {loss:.3f}  scattered {scattered:.3f}\n")
    return model


def write(model: Model, path: Path = WEIGHTS) -> None:
    whole = torch.cat([(p.detach() / UNIT).round().clamp(-127, 127).flatten() for p in model.parameters()])
    data = {"unit": UNIT, "shapes": {name: list(p.shape) for name, p in model.named_parameters()}}
    data["bytes"] = base64.b64encode(whole.to(torch.int8).numpy().tobytes()).decode()
    path.write_text(json.dumps(data) + "\n", encoding="utf-8")


def read(path: Path = WEIGHTS) -> Model:
    """The model as the page has it, in float64."""
    data = json.loads(path.read_text(encoding="utf-8"))
    numbers = torch.frombuffer(bytearray(base64.b64decode(data["bytes"])), dtype=torch.int8).double() * data["unit"]
    model = Model().double()
    parts = numbers.split([math.prod(shape) for shape in data["shapes"].values()])
    named = zip(data["shapes"].items(), parts, strict=True)
    model.load_state_dict({name: part.view(shape) for (name, shape), part in named})
    return model


if __name__ == "__main__":
    torch.set_num_threads(1)
    write(train())
