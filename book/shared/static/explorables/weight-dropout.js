// Dropout on the weights of causal attention: one draw, the sums of its rows, and the mean over many draws.
import { Explorable, button, choice, define, grid, h, heat, number, slider, softmax, sum } from "./base.js";

const SCORES = [[0.4, 1.1, -0.2, 0.6, 0.9], [0.9, 0.3, 0.8, -0.5, 0.2], [-0.3, 1.6, 0.5, 0.7, 1.0], [0.2, -0.8, 2.6, 0.1, -0.4], [0.5, 0.4, -0.1, 0.6, 0.3]];
const WEIGHTS = SCORES.map((row, i) => softmax(row.map((score, j) => (j <= i ? score : -Infinity))));
const SEED = 8;

class WeightDropout extends Explorable {
  static tag = "abh-weight-dropout";
  static words = {
    en: {
      mode: "mode", train: "train", eval: "eval", rate: "p", once: "toss once", often: "toss 100 times", weights: "w, returned", dropped: "w̃, mixes the values",
      mean: (n) => `mean of w̃ (tosses: ${n})`, sum: "sum",
      training: (low, high, off) => `The rows of w̃ sum to ${low} … ${high}. The mean differs from w by at most ${off}.`,
      evaluating: "Nothing is dropped and nothing is rescaled: the values are mixed by w itself, in every call.",
    },
    zh: {
      mode: "模式", train: "训练", eval: "评估", rate: "p", once: "抛一次", often: "抛 100 次", weights: "w，返回的", dropped: "w̃，用来混合值",
      mean: (n) => `w̃ 的平均（共 ${n} 次）`, sum: "和",
      training: (low, high, off) => `w̃ 各行的和在 ${low} 到 ${high} 之间。平均与 w 最多相差 ${off}。`,
      evaluating: "什么也不丢，什么也不放大：每次调用，混合值的都是 w 本身。",
    },
  };

  build() {
    const { words } = this;
    const restart = () => { this.total = null; this.update(); };
    this.mode = choice(words.mode, [["train", words.train], ["eval", words.eval]], "train", restart);
    this.rate = slider(words.rate, { min: 0, max: 1, step: 0.05, value: 0.3 }, restart);
    const tosses = [1, 100].map((times, k) => button(k ? words.often : words.once, () => { this.toss(times); this.show(); }));
    this.tables = [words.weights, words.dropped, ""].map((name) => withSums(grid(name, 5, 6), words.sum));
    this.note = h("p", { class: "abh-note", "aria-live": "polite" });
    this.append(h("div", { class: "abh-row" }, this.mode, this.rate, ...tosses), h("div", { class: "abh-row" }, ...this.tables), this.note);
    this.weights = WEIGHTS;
  }

  // From the first coin again: the same seed gives the same coins, whatever p is.
  update() {
    this.coin = coins(SEED);
    this.draws = 0;
    this.total = WEIGHTS.map((row) => row.map(() => 0));
    this.rate.say(number(this.rate.value));
    this.toss(1);
    this.show();
  }

  toss(times) {
    const p = this.rate.value;
    for (let time = 0; time < times; time++) {
      this.kept = WEIGHTS.map((row) => row.map(() => this.coin() >= p || this.mode.value === "eval"));
      const factor = this.mode.value === "eval" ? 1 : 1 / (1 - p);
      this.dropped = WEIGHTS.map((row, i) => row.map((weight, j) => (this.kept[i][j] ? weight * factor : 0)));
      this.total = this.total.map((row, i) => row.map((value, j) => value + this.dropped[i][j]));
      this.draws++;
    }
    this.mean = this.total.map((row) => row.map((value) => value / this.draws));
  }

  show() {
    const { words } = this;
    [WEIGHTS, this.dropped, this.mean].forEach((values, t) => this.tables[t].cells.forEach((row, i) => {
      row.forEach((cell, j) => {
        if (j < 5) heat(cell, values[i][j], 1.2);
        else cell.textContent = number(sum(values[i]));
        cell.classList.toggle("abh-beyond", j > i && j < 5);
        cell.classList.toggle("abh-dropped", t === 1 && j <= i && !this.kept[i][j]);
      });
    }));
    this.tables[2].caption.textContent = words.mean(this.draws);
    const sums = this.dropped.map(sum);
    const off = Math.max(...this.mean.flatMap((row, i) => row.map((value, j) => Math.abs(value - WEIGHTS[i][j]))));
    this.note.textContent = this.mode.value === "eval" ? words.evaluating
      : words.training(number(Math.min(...sums)), number(Math.max(...sums)), number(off, 3));
  }
}

function withSums(table, name) {
  table.tBodies[0].before(h("thead", {}, h("tr", {}, h("td", { colspan: 5 }), h("th", { scope: "col" }, name))));
  return table;
}

// mulberry32: uniform numbers in [0, 1) that are the same on every machine.
function coins(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), seed | 1);
    t = (t + Math.imul(t ^ (t >>> 7), t | 61)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

define(WeightDropout);
