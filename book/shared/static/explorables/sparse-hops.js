// Which token has heard from which after how many layers, for a window, a global token and random keys. Rows ask, columns are asked.
import { Explorable, choice, define, grid, h, number, slider, sum } from "./base.js";

const N = 17;
const all = Array.from({ length: N }, (_, i) => i);

// One number for each pair, always the same ones: the largest that are not yet in the pattern become random keys.
function luck() {
  let state = 1;
  return all.map(() => all.map(() => (state = (48271 * state) % 2147483647) / 2147483647));
}

function pattern(window, star, random, luck) {
  const mask = all.map((i) => all.map((j) =>
    Math.abs(i - j) <= window || (i === 0 && star !== "none") || (j === 0 && star === "both")));
  return mask.map((row, i) => {
    const left = i === 0 && star !== "none" ? [] : all.filter((j) => !row[j]).sort((a, b) => luck[i][b] - luck[i][a]);
    return row.map((may, j) => may || left.slice(0, random).includes(j));
  });
}

// Layers until row i has heard from column j: one layer asks everyone it sees what they know, and forgets nothing.
function distances(mask) {
  const hops = all.map((i) => all.map((j) => (i === j ? 0 : Infinity)));
  for (let layer = 1; layer < N; layer++) {
    const before = hops.map((row) => [...row]);
    for (const i of all) for (const j of all)
      if (before[i][j] === Infinity && all.some((k) => mask[i][k] && before[k][j] < layer)) hops[i][j] = layer;
  }
  return hops;
}

class SparseHops extends Explorable {
  static tag = "abh-sparse-hops";
  static words = {
    en: {
      window: "window w", star: "token 0", none: "plain", one: "sees all", both: "both ways", random: "random keys r",
      layers: "layers", grid: "Row: who asks. Column: who is heard. Number: after how many layers.",
      pairs: "pairs looked at", heard: "pairs heard by now", until: "layers until all hear all", never: "never", percent: "\u00a0%",
      cell: (i, j, t) => `${i} hears from ${j}: ${t === Infinity ? "never" : `layer ${t}`}`,
      path: (i, j, t, way) => `Token ${i} hears from token ${j} after ${t} ${t === 1 ? "layer" : "layers"}: ${way}.`,
      self: (i) => `Token ${i} knows itself from the start.`, lost: (i, j) => `Token ${i} never hears from token ${j}.`,
    },
    zh: {
      window: "窗口 w", star: "词元 0", none: "普通", one: "看所有人", both: "双向", random: "随机键 r",
      layers: "层数", grid: "行：谁在问；列：听到谁；数字：经过几层。",
      pairs: "要算的对", heard: "此时听到的对", until: "人人听到人人所需层数", never: "永不", percent: "%",
      cell: (i, j, t) => `${i} 听到 ${j}：${t === Infinity ? "永不" : `第 ${t} 层`}`,
      path: (i, j, t, way) => `词元 ${i} 经过 ${t} 层听到词元 ${j}：${way}。`,
      self: (i) => `词元 ${i} 一开始就知道自己。`, lost: (i, j) => `词元 ${i} 永远听不到词元 ${j}。`,
    },
  };

  build() {
    const { words } = this;
    const changed = () => this.update();
    this.luck = luck();
    this.pair = [N - 1, 1];
    this.window = slider(words.window, { min: 0, max: 4, step: 1, value: 1 }, changed);
    this.random = slider(words.random, { min: 0, max: 2, step: 1, value: 0 }, changed);
    this.layer = slider(words.layers, { min: 0, max: N - 1, step: 1, value: 4 }, changed);
    this.star = choice(words.star, [["none", words.none], ["one", words.one], ["both", words.both]], "none", changed);
    this.grid = grid(words.grid, N, N, (i, j) => { this.pair = [i, j]; this.update(); });
    this.grid.classList.add("abh-small");
    this.facts = h("dl", { class: "abh-readout" });
    this.note = h("p", { class: "abh-note", "aria-live": "polite" });
    this.append(
      h("div", { class: "abh-row" }, this.window, this.random, this.star),
      h("div", { class: "abh-row" }, this.layer),
      h("div", { class: "abh-row" }, this.grid, this.facts),
      this.note,
    );
  }

  update() {
    this.mask = pattern(this.window.value, this.star.value, this.random.value, this.luck);
    this.hops = distances(this.mask);
    this.needed = Math.max(...this.hops.flat());
    for (const control of [this.window, this.random, this.layer]) control.say(String(control.value));
    this.path = this.route(...this.pair);
    this.show();
  }

  // A shortest way for news from j to i, the listener first.
  route(i, j) {
    const way = [i];
    while (this.hops[i][j] > 0 && this.hops[i][j] < Infinity) {
      i = all.find((k) => this.mask[i][k] && this.hops[k][j] === this.hops[i][j] - 1);
      way.push(i);
    }
    return way;
  }

  show() {
    const { words, hops, path } = this;
    const layer = this.layer.value;
    for (const i of all) for (const j of all) {
      const cell = this.grid.cells[i][j];
      const heard = hops[i][j] <= layer;
      cell.textContent = heard ? hops[i][j] : "";
      cell.style.setProperty("--heat", heard ? Math.max(hops[i][j], 1) ** -0.6 : 0);
      cell.ariaLabel = words.cell(i, j, hops[i][j]);
      cell.classList.toggle("abh-from", path.indexOf(j) === path.indexOf(i) + 1 && path.includes(i) && path.includes(j));
      cell.ariaPressed = i === this.pair[0] && j === this.pair[1];
    }
    const share = (test) => `${number(100 * sum(hops.flat().map(test)) / N ** 2, 1)}${this.words.percent}`;
    this.looked = sum(this.mask.flat().map(Number));
    const facts = [
      [words.pairs, `${this.looked} / ${N * N}`],
      [words.heard, share((t) => t <= layer)],
      [words.until, this.needed === Infinity ? words.never : String(this.needed)],
    ];
    this.facts.replaceChildren(...facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
    const [i, j] = this.pair;
    this.note.textContent = i === j ? words.self(i)
      : path.length === 1 ? words.lost(i, j) : words.path(i, j, hops[i][j], path.join(" ← "));
  }
}
define(SparseHops);
