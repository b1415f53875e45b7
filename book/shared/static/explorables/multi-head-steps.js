// The six steps of multi-head attention on three tokens, small enough to follow every number to where it came from.
import { Explorable, choice, define, grid, h, heat, matmul, number, softmax, transpose } from "./base.js";

const WIDTH = 2; // of a head: four features, two heads
const GIVEN = { // the matrices as nn.Linear stores them, [out, in]
  x: [[1, 0, 2, -1], [0, 1, -1, 1], [2, 1, 0, 0]],
  Wq: [[1, 0, 0, 1], [0, 1, -1, 0], [0.5, 0, 1, 0], [0, 1, 0, -0.5]],
  Wk: [[0, 1, 0, 0.5], [1, 0, 0, -1], [1, 0, 0.5, 0], [0, -1, 1, 0]],
  Wv: [[1, 0, 0, 0], [0, 1, 0, 1], [0, 0, 1, 0], [-1, 0, 0, 1]],
  Wo: [[1, 0, 0, 0.5], [0, 1, 0.5, 0], [0, -0.5, 1, 0], [0.5, 0, 0, 1]],
};

// How each table is made: by a product (and a divisor), a cut, a softmax along rows, or by setting two side by side.
const MADE = {
  q: ["product", "x", "Wqᵀ"], k: ["product", "x", "Wkᵀ"], v: ["product", "x", "Wvᵀ"],
  q0: ["cut", "q", 0], q1: ["cut", "q", 1], k0: ["cut", "k", 0], k1: ["cut", "k", 1], v0: ["cut", "v", 0], v1: ["cut", "v", 1],
  scores0: ["product", "q0", "k0ᵀ", "√2"], weights0: ["softmax", "scores0"], head0: ["product", "weights0", "v0"],
  scores1: ["product", "q1", "k1ᵀ", "√2"], weights1: ["softmax", "scores1"], head1: ["product", "weights1", "v1"],
  merged: ["join", "head0", "head1"], out: ["product", "merged", "Woᵀ"],
};

// What a step shows, for projection p (q, k, v) and head i (0, 1).
const STEPS = [
  () => ["x"],
  (p) => ["x", "@", `W${p}ᵀ`, "=", p],
  (p) => [p, "→", `${p}0`, `${p}1`],
  (p, i) => [`q${i}`, "@", `k${i}ᵀ`, "/ √2 =", `scores${i}`, "", "→", `weights${i}`, "@", `v${i}`, "=", `head${i}`],
  () => ["head0", "head1", "→", "merged"],
  () => ["merged", "@", "Woᵀ", "=", "out"],
];
const SHAPES = ["x [1, 3, 4]", "q, k, v [1, 3, 4]", "q, k, v [1, 2, 3, 2]", "scores, weights [1, 2, 3, 3]   heads [1, 2, 3, 2]", "merged [1, 3, 4]", "out [1, 3, 4]"];

class MultiHeadSteps extends Explorable {
  static tag = "abh-multi-head-steps";
  static words = {
    en: {
      step: "step", for: "for", head: "head", start: "Choose a number in a framed table: the numbers it was made of light up.",
      steps: ["input", "project", "split", "attend", "merge", "project back"],
    },
    zh: {
      step: "步骤", for: "看", head: "头", start: "在带框的表里选一个数，它的来源就会亮起来。",
      steps: ["输入", "投影", "拆分", "算注意力", "合并", "投影回去"],
    },
  };

  build() {
    const { words } = this;
    this.tensors = compute();
    const turned = () => { this.chosen = null; this.update(); };
    this.step = choice(words.step, SHAPES.map((_, s) => [`${s}`, `${s + 1}`]), "1", turned);
    this.projection = choice(words.for, [["q", "q"], ["k", "k"], ["v", "v"]], "q", turned);
    this.head = choice(words.head, [["0", "0"], ["1", "1"]], "0", turned);
    this.heading = h("p", { class: "abh-heading" });
    this.stage = h("div", { class: "abh-row abh-stage" });
    this.note = h("p", { class: "abh-note abh-code", "aria-live": "polite" });
    this.append(h("div", { class: "abh-row" }, this.step, this.projection, this.head), this.heading, this.stage, this.note);
  }

  update() {
    const step = Number(this.step.value);
    this.projection.hidden = step !== 1 && step !== 2;
    this.head.hidden = step !== 3;
    this.heading.replaceChildren(h("b", {}, `${step + 1} ${this.words.steps[step]}`), h("span", { class: "abh-code" }, SHAPES[step]));
    this.tables = {};
    const parts = STEPS[step](this.projection.value, this.head.value);
    this.stage.replaceChildren(...parts.map((part) => (this.tensors[part] ? this.table(part, parts) : h("span", { class: part ? "abh-sign" : "abh-break" }, part))));
    this.note.textContent = step ? this.words.start : "";
  }

  table(name, shown) {
    const values = this.tensors[name];
    const from = MADE[name]?.slice(1).some((source) => shown.includes(source));
    const table = grid(`${name} [${values.length}, ${values[0].length}]`, values.length, values[0].length, from && ((i, j) => this.trace(name, i, j)));
    table.cells.forEach((row, i) => row.forEach((cell, j) => {
      heat(cell, values[i][j], 3);
      cell.textContent = short(values[i][j]);
      const owner = name.match(/[01]/)?.[0] ?? (/^(q|k|v|merged)$/.test(name) ? "01"[Math.floor(j / WIDTH)] : "");
      cell.dataset.head = owner;
    }));
    if (from) table.addEventListener("focusin", (event) => event.target.click()); // the arrow keys choose as they go
    return (this.tables[name] = table);
  }

  // Light up what a number was made of, and write the sum.
  trace(name, i, j) {
    const { cells, text } = origin(this.tensors, name, i, j);
    this.chosen = { name, i, j, from: cells };
    this.querySelectorAll(".abh-from, .abh-this").forEach((cell) => cell.classList.remove("abh-from", "abh-this"));
    for (const [table, row, column] of cells) this.tables[table].cells[row][column].classList.add("abh-from");
    this.tables[name].cells[i][j].classList.add("abh-this");
    this.note.textContent = `${name}[${i}, ${j}] = ${text} = ${number(this.tensors[name][i][j], 4)}`;
  }
}

const short = (value) => number(value).replace(/\.?0+$/, ""); // 0.50 is 0.5, and 2.00 is 2

function compute() {
  const tensors = { ...GIVEN };
  const get = (name) => tensors[name] ?? (tensors[name] = transpose(tensors[name.slice(0, -1)])); // …ᵀ
  for (const [name, [way, a, b, divisor]] of Object.entries(MADE)) {
    if (way === "product") tensors[name] = matmul(get(a), get(b)).map((row) => row.map((value) => (divisor ? value / Math.sqrt(WIDTH) : value)));
    if (way === "cut") tensors[name] = get(a).map((row) => row.slice(b * WIDTH, (b + 1) * WIDTH));
    if (way === "softmax") tensors[name] = get(a).map(softmax);
    if (way === "join") tensors[name] = get(a).map((row, i) => [...row, ...get(b)[i]]);
  }
  return tensors;
}

function origin(tensors, name, i, j) {
  const [way, a, b, divisor] = MADE[name];
  const along = tensors[a][i].map((_, k) => k);
  if (way === "cut") return { cells: [[a, i, j + b * WIDTH]], text: `${a}[${i}, ${j + b * WIDTH}]` };
  if (way === "join") {
    const [source, column] = [j < WIDTH ? a : b, j % WIDTH];
    return { cells: [[source, i, column]], text: `${source}[${i}, ${column}]` };
  }
  if (way === "softmax") {
    const powers = tensors[a][i].map((score) => `exp(${short(score)})`);
    return { cells: along.map((k) => [a, i, k]), text: `${powers[j]} / (${powers.join(" + ")})` };
  }
  const terms = along.map((k) => `${short(tensors[a][i][k])}·${short(tensors[b][k][j])}`).join(" + ");
  const cells = along.flatMap((k) => [[a, i, k], [b, k, j]]);
  return { cells, text: `${a}[${i}, :] @ ${b}[:, ${j}]${divisor ? " / √2" : ""} = ${divisor ? `(${terms}) / √2` : terms}` };
}

define(MultiHeadSteps);
