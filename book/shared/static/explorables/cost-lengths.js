// What a table of n × n scores costs beside two attentions without one, against the length. Operations of matrix products, counted.
import { Explorable, choice, define, h, number, slider } from "./base.js";

const SHORTEST = 4, LONGEST = 17; // powers of two
const WIDE = 560, HIGH = 300, LEFT = 54, BOTTOM = 270, CHEAPEST = 4, DEAREST = 14; // the picture, and its powers of ten

// For n tokens of width d and r random features: [operations, elements of the largest tensor].
const COSTS = {
  table: (n, d) => [4 * n * n * d, Math.max(n * n, n * d)], // QKᵀ, then AV
  elu: (n, d) => [4 * n * d * d + 2 * n * d, Math.max(n * d, d * d)], // φ(K)ᵀV, φ(Q) times that, and the normaliser
  performer: (n, d, r) => [8 * n * r * d + 2 * n * r, Math.max(n * r, n * d, r * d)], // and the features of Q and of K
};

const svg = (tag, given, ...children) => {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(given)) element.setAttribute(name, value);
  element.append(...children);
  return element;
};
const across = (n) => LEFT + ((Math.log2(n) - SHORTEST) / (LONGEST - SHORTEST)) * (WIDE - LEFT - 10);
const up = (work) => BOTTOM - ((Math.log10(work) - CHEAPEST) / (DEAREST - CHEAPEST)) * (BOTTOM - 10);

class CostLengths extends Explorable {
  static tag = "abh-cost-lengths";
  static words = {
    en: {
      length: "length n", width: "width d", features: "features r", table: "score table", elu: "elu + 1", performer: "Performer",
      work: "operations", largest: "largest tensor", twice: "at 2n", picture: "Operations against the length, both axes logarithmic",
      note: (n, times, elu, performer) => `At ${n} tokens the table takes ${times} times the operations of elu + 1. It is dearer than elu + 1 from ${elu} tokens on, than Performer from ${performer}.`,
    },
    zh: {
      length: "长度 n", width: "宽度 d", features: "特征数 r", table: "分数表", elu: "elu + 1", performer: "Performer",
      work: "运算量", largest: "最大张量", twice: "长度翻倍", picture: "运算量随长度的变化，两轴均为对数",
      note: (n, times, elu, performer) => `${n} 个词元时，分数表的运算量是 elu + 1 的 ${times} 倍。从 ${elu} 个词元起它比 elu + 1 贵，从 ${performer} 个起比 Performer 贵。`,
    },
  };

  build() {
    const { words } = this;
    const changed = () => this.update();
    this.length = slider(words.length, { min: SHORTEST, max: LONGEST, step: 0.5, value: 10 }, changed);
    this.features = slider(words.features, { min: 4, max: 10, step: 1, value: 8 }, changed);
    this.width = choice(words.width, [16, 64, 128].map((d) => [String(d), String(d)]), "64", changed);
    this.note = h("p", { class: "abh-note", "aria-live": "polite" });
    this.append(
      h("div", { class: "abh-row" }, this.length, this.features, this.width),
      this.picture(),
      h("div", { class: "abh-row" }, this.table()),
      this.note,
    );
  }

  picture() {
    const grey = { class: "abh-axis" };
    const lengths = [16, 128, 1024, 8192, 65536].map((n) =>
      svg("text", { x: across(n), y: BOTTOM + 24, "text-anchor": "middle" }, n.toLocaleString("en").replace(",", "\u202f")));
    const works = [5, 8, 11, 14].flatMap((power) => {
      const y = up(10 ** power);
      const label = svg("text", { x: LEFT - 6, y: y + 5, "text-anchor": "end" }, "10", svg("tspan", { dy: "-0.4em" }, power));
      return [svg("line", { ...grey, x1: LEFT, x2: WIDE, y1: y, y2: y }), label];
    });
    this.here = svg("line", { class: "abh-here", y1: 6, y2: BOTTOM });
    this.lines = Object.keys(COSTS).map((name) => svg("line", { class: `abh-line abh-${name}` }));
    this.dots = Object.keys(COSTS).map((name) => svg("circle", { class: `abh-line abh-${name}`, r: 5 }));
    return svg("svg", { class: "abh-chart", viewBox: `0 0 ${WIDE} ${HIGH}`, overflow: "visible", role: "img", "aria-label": this.words.picture },
      ...works, ...lengths, svg("text", { x: WIDE - 4, y: BOTTOM - 6, "text-anchor": "end" }, "n"), this.here, ...this.lines, ...this.dots);
  }

  table() {
    const { words } = this;
    const head = ["", words.work, words.largest, words.twice].map((text) => (text ? h("th", { scope: "col" }, text) : h("td")));
    this.cells = Object.keys(COSTS).map(() => [h("span"), h("span"), h("span")]);
    const rows = Object.keys(COSTS).map((name, i) => h("tr", {},
      h("th", { scope: "row" }, h("i", { class: `abh-key abh-${name}` }), words[name]), ...this.cells[i].map((cell) => h("td", {}, cell))));
    return h("table", { class: "abh-grid abh-costs" }, h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...rows));
  }

  update() {
    const n = Math.round(2 ** this.length.value), d = Number(this.width.value), r = 2 ** this.features.value;
    const work = (name, length) => COSTS[name](length, d, r)[0];
    this.costs = Object.fromEntries(Object.keys(COSTS).map((name) => [name, COSTS[name](n, d, r)]));
    this.sizes = { n, d, r };
    this.crossings = ["elu", "performer"].map((name) => Math.floor(work(name, 1) / (4 * d)) + 1); // 4n²d first exceeds n times what one token costs
    this.length.say(String(n));
    this.features.say(String(r));
    Object.keys(COSTS).forEach((name, i) => {
      const ends = { x1: across(16), y1: up(work(name, 16)), x2: across(131072), y2: up(work(name, 131072)) };
      for (const [side, value] of Object.entries(ends)) this.lines[i].setAttribute(side, value);
      this.dots[i].setAttribute("cx", across(n));
      this.dots[i].setAttribute("cy", up(work(name, n)));
      const [operations, largest] = this.costs[name];
      [short(operations), short(largest), `× ${number(work(name, 2 * n) / operations, 0)}`].forEach((text, j) => (this.cells[i][j].textContent = text));
    });
    for (const side of ["x1", "x2"]) this.here.setAttribute(side, across(n));
    const times = this.costs.table[0] / this.costs.elu[0];
    this.note.textContent = this.words.note(n, number(times, times < 10 ? 2 : 0), ...this.crossings);
  }
}

// 68 719 476 736 as 68.7 G.
function short(value) {
  const step = Math.min(4, Math.floor(Math.log10(value) / 3));
  return `${number(value / 1000 ** step, step ? 1 : 0)}\u202f${["", "k", "M", "G", "T"][step]}`;
}
define(CostLengths);
