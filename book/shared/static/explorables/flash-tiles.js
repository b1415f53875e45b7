// FlashAttention in slow motion: a tile of scores is made, used and forgotten; m, ℓ and O are carried along.
import { Explorable, button, choice, define, grid, h, heat, matmul, number, slider, softmax, sum, tick, transpose } from "./base.js";

const N = 8, D = 4, BYTES = 2;
const all = Array.from({ length: N }, (_, i) => i);

// Numbers between −2 and 2 that look random.
const draw = (seed) => all.map((i) => [0, 1, 2, 3].map((c) => Math.round(20 * Math.sin(seed * (D * i + c + 1) ** 2)) / 10));

// The tiles in the order of the walk, as [first query, first key]; the future is skipped.
const walk = (block, causal) => all.filter((i) => i % block === 0).flatMap((i) =>
  all.filter((j) => j % block === 0 && (!causal || j <= i)).map((j) => [i, j]));

class FlashTiles extends Explorable {
  static tag = "abh-flash-tiles";
  static words = {
    en: {
      block: "tile", causal: "causal", step: "tiles done", next: "Next tile", scores: "Queries down, keys across. Only one tile exists.",
      rows: "Carried along", query: "query", error: "off by", flash: "moved so far", plain: "plain attention moves", fast: "fast memory needed",
      start: "Nothing has been read yet: m = −∞, ℓ = 0.",
      note: (i, j, up, last) => `Queries ${i} meet keys ${j}. ${up ? `In ${up} of the rows the maximum rises, and the old sum shrinks.` : "No maximum rises, so nothing has to shrink."}${last ? " The rows are complete: O / ℓ is written." : ""}`,
    },
    zh: {
      block: "分块", causal: "因果", step: "已算块数", next: "下一块", scores: "行是查询，列是键。只有眼前这一块。",
      rows: "随身带着的数", query: "查询", error: "误差", flash: "已搬运", plain: "普通注意力要搬", fast: "需要快速存储",
      start: "什么都还没读：m = −∞，ℓ = 0。",
      note: (i, j, up, last) => `查询 ${i} 遇到键 ${j}。${up ? `有 ${up} 行的最大值升高，旧的和随之缩小。` : "最大值都没有升高，不用缩小。"}${last ? "这几行完成了：写出 O / ℓ。" : ""}`,
    },
  };

  build() {
    const { words } = this;
    [this.q, this.k, this.v] = [1, 2, 3].map(draw);
    this.scores = matmul(this.q, transpose(this.k)).map((row) => row.map((score) => score / Math.sqrt(D)));
    const restart = () => { this.input.value = 0; this.update(); };
    this.block = choice(words.block, [1, 2, 4, 8].map((size) => [String(size), `${size} × ${size}`]), "4", restart);
    this.causal = tick(words.causal, false, restart);
    this.step = slider(words.step, { min: 0, value: 2 }, () => this.update());
    this.input = this.step.querySelector("input");
    this.next = button(words.next, () => { this.input.value = (this.step.value + 1) % (this.tiles.length + 1); this.update(); });
    this.grid = grid(words.scores, N, N);
    this.carried = h("tbody");
    const power = h("span", {}, "e", h("sup", {}, "m − m′"));
    const head = [words.query, "m", power, "ℓ", words.error].map((text) => h("th", { scope: "col" }, text));
    this.bars = h("dl", { class: "abh-bars" });
    this.note = h("p", { class: "abh-note", "aria-live": "polite" });
    this.append(
      h("div", { class: "abh-row" }, this.block, this.causal),
      h("div", { class: "abh-row" }, this.step, this.next),
      h("div", { class: "abh-row" }, this.grid,
        h("table", { class: "abh-grid abh-carried" }, h("caption", {}, words.rows), h("thead", {}, h("tr", {}, ...head)), this.carried)),
      this.bars, this.note,
    );
  }

  update() {
    const block = Number(this.block.value), causal = this.causal.value;
    this.tiles = walk(block, causal);
    this.input.max = this.tiles.length;
    const step = this.step.value;
    this.step.say(`${step} / ${this.tiles.length}`);
    this.seen = (i, j) => (causal && j > i ? -Infinity : this.scores[i][j]);
    this.exact = matmul(all.map((i) => softmax(all.map((j) => this.seen(i, j)))), this.v);
    this.rows = all.map(() => ({ m: -Infinity, l: 0, shrink: 1, o: Array(D).fill(0) }));
    this.moved = 0;
    for (const tile of this.tiles.slice(0, step)) this.take(block, ...tile);
    this.plain = BYTES * (4 * N * N + 4 * N * D); // the table out, in, out, in; Q, K, V and O
    this.total = BYTES * sum(this.tiles.map(([i, j]) => this.traffic(block, i, j)));
    this.show(block, step);
  }

  last = (i, j) => !this.tiles.some((tile) => tile[0] === i && tile[1] > j);
  traffic = (block, i, j) => block * D * (2 + (j === 0) + this.last(i, j)); // K and V; Q before the first tile, O after the last

  // One tile: new maxima, old sums shrunk, new terms added.
  take(block, i, j) {
    for (const row of all.slice(i, i + block)) {
      const old = this.rows[row];
      const scores = all.slice(j, j + block).map((key) => this.seen(row, key));
      const m = Math.max(old.m, ...scores);
      const shrink = Math.exp(old.m - m);
      const votes = scores.map((score) => Math.exp(score - m));
      const o = old.o.map((value, c) => value * shrink + sum(votes.map((vote, key) => vote * this.v[j + key][c])));
      this.rows[row] = { m, shrink, l: old.l * shrink + sum(votes), o };
    }
    this.moved += BYTES * this.traffic(block, i, j);
  }

  show(block, step) {
    const { words, tiles, rows } = this;
    const tile = tiles[step - 1];
    for (const i of all) for (const j of all) {
      const cell = this.grid.cells[i][j];
      const order = tiles.findIndex(([a, b]) => i - (i % block) === a && j - (j % block) === b);
      const now = tile && order === step - 1;
      heat(cell, now ? this.seen(i, j) : 0, 4, 1);
      if (now) continue;
      cell.textContent = "";
      cell.className = order < 0 ? "abh-never" : order < step ? "abh-gone" : "";
    }
    const first = tile ? tile[0] : 0;
    this.carried.replaceChildren(...all.slice(first, first + block).map((i) => {
      const { m, l, shrink, o } = rows[i];
      const off = Math.max(...o.map((value, c) => Math.abs(value / l - this.exact[i][c])));
      const texts = [number(m), number(shrink), number(l), l ? number(off) : "–"];
      return h("tr", {}, h("th", { scope: "row" }, String(i)), ...texts.map((text) => h("td", {}, h("span", {}, text))));
    }));
    const most = Math.max(this.plain, this.total);
    const bar = (name, bytes, text = bytes) => [h("dt", {}, name), h("dd", {}, h("i", { style: `width:${(60 * bytes) / most}%` }), `${text} B`)];
    this.fast = BYTES * 4 * block * D; // Q, K, V and O
    this.bars.replaceChildren(...bar(words.flash, this.moved, `${this.moved} / ${this.total}`), ...bar(words.plain, this.plain), ...bar(words.fast, this.fast));
    const range = (from) => (block === 1 ? `${from}` : `${from}–${from + block - 1}`);
    const up = tile ? sum(rows.slice(first, first + block).map(({ shrink }) => Number(shrink > 0 && shrink < 1))) : 0;
    this.note.textContent = tile ? words.note(range(tile[0]), range(tile[1]), up, this.last(...tile)) : words.start;
  }
}
define(FlashTiles);
