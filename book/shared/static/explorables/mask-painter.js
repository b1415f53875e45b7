// A mask to paint, by rules or cell by cell, and how each of the six dialects writes it.
import { Explorable, define, grid, h, slider, tick } from "./base.js";

const L = 7;
const PLACES = [...Array(L).keys()];

// How a dialect writes «may look» and «may not», the way to our `may`, and back.
const DIALECTS = [
  ["1 key_padding_mask", "[B, Lk]", "False", "True", "~m[:, None, None, :]", "~may[:, 0, 0]"],
  ["2 attn_mask, 0/1", "[Lq, Lk]", "1", "0", "m != 0", "may[0, 0].int()"],
  ["3 mask, float 1/0", "[B, Lq, Lk]", "1.", "0.", "(m != 0)[:, None]", "may[:, 0].float()"],
  ["4 SDPA, bool", "[B, H, Lq, Lk]", "True", "False", "m", "may"],
  ["5 PyTorch, float", "[B, H, Lq, Lk]", "0.", "-inf", "m == 0", "torch.zeros(may.shape).masked_fill(~may, -math.inf)"],
  ["6 nn.MHA, bool", "[Lq, Lk]", "False", "True", "~m", "~may[0, 0]"],
].map(([name, shape, keep, drop, ours, theirs]) => ({ name, shape, keep, drop, ours, theirs }));
const truth = (entry) => !["False", "0", "0."].includes(entry);
const drops = ({ drop }, entry) => (drop === "-inf" ? entry === drop : truth(entry) === truth(drop));
const each = (cells, act) => cells.forEach((row, i) => row.forEach((cell, j) => act(cell, i, j)));

class MaskPainter extends Explorable {
  static tag = "abh-mask-painter";
  static words = {
    en: {
      grid: "rows: queries · columns: keys", cell: (i, j) => `query ${i}, key ${j}`, off: "off", hand: "by hand",
      causal: "causal", padding: "real tokens", window: "window", global: "global tokens", written: "written in", translated: "translated into",
      cannot: "Dialect 1 has one row for all queries: it cannot say this mask.", empty: (rows) => ` Nowhere to look: query ${rows.join(", ")}.`,
      misread: (n) => (n ? `Untranslated, ${n} entries would be misread (outlined).` : "Even untranslated it would be understood."),
    },
    zh: {
      grid: "行：查询 · 列：键", cell: (i, j) => `查询 ${i}，键 ${j}`, off: "关", hand: "手绘",
      causal: "因果", padding: "真实词元", window: "窗口", global: "全局词元", written: "写成", translated: "翻译成",
      cannot: "第 1 种方言里所有查询共用一行，写不出这张掩码。", empty: (rows) => `无处可看的查询：${rows.join("、")}。`,
      misread: (n) => (n ? `不翻译就交出去，有 ${n} 个元素会被读错（已框出）。` : "这里不翻译也能读对。"),
    },
  };

  build() {
    const { words } = this;
    const ruled = () => { this.mask = null; this.update(); };
    this.causal = tick(words.causal, true, ruled);
    this.padding = slider(words.padding, { min: 1, max: L, value: L }, ruled);
    this.window = slider(words.window, { min: 1, max: L, value: L }, ruled);
    this.global = slider(words.global, { min: 0, max: 3, value: 0 }, ruled);
    this.canvas = grid(words.grid, L, L, (i, j) => this.paint(i, j));
    each(this.canvas.cells, (cell, i, j) => {
      cell.setAttribute("aria-label", words.cell(i, j));
      cell.onpointerdown = () => { this.brush = null; }; // held, the mouse goes on as it began
      cell.onpointerleave = ({ buttons }) => { if (buttons === 1) this.brush ??= this.paint(i, j); };
      cell.onpointerenter = ({ buttons }) => { if (buttons === 1 && this.brush != null) this.paint(i, j, this.brush); };
    });
    this.ruleLine = h("p", { class: "abh-code" });
    this.panels = [this.panel(words.written, 2), this.panel(words.translated, 4)];
    this.codeLine = h("p", { class: "abh-code" });
    this.note = h("p", { class: "abh-note", "aria-live": "polite" });
    const rules = h("div", { class: "abh-rules" }, this.causal, this.padding, this.window, this.global, this.ruleLine);
    this.append(h("div", { class: "abh-row" }, this.canvas, rules), h("div", { class: "abh-row" }, ...this.panels), this.codeLine, this.note);
  }

  panel(name, chosen) {
    const options = DIALECTS.map((dialect, index) => h("option", { value: index, selected: index === chosen }, dialect.name));
    const select = h("select", { onchange: () => this.update() }, ...options);
    const table = grid("", L, L);
    return Object.assign(h("div", {}, h("label", {}, name, " ", select), table), { select, table });
  }

  paint(i, j, may = !this.mask[i][j]) {
    this.mask[i][j] = may;
    this.rule = this.words.hand;
    this.update();
    return may;
  }

  // The mask that the rules make, and the Python for it (i is a column, j a row).
  follow() {
    const [causal, n, w, g] = [this.causal.value, this.padding.value, this.window.value, this.global.value];
    const near = [`((i - j).abs() < ${w})`, ...(g ? [`(i < ${g})`, `(j < ${g})`] : [])].join(" | ");
    const rules = [causal && "(j <= i)", n < L && `(j < ${n})`, w < L && (g ? `(${near})` : near)].filter(Boolean);
    this.rule = rules.join(" & ") || "(i == i) & (j == j)";
    this.mask = PLACES.map((i) => PLACES.map((j) => (!causal || j <= i) && j < n && (w === L || Math.abs(i - j) < w || i < g || j < g)));
    for (const [box, number, off] of [[this.padding, n, L], [this.window, w, L], [this.global, g, 0]]) {
      box.say(number === off ? this.words.off : String(number));
    }
  }

  update() {
    if (!this.mask) this.follow();
    const { words, mask } = this;
    const [source, target] = this.panels.map(({ select }) => DIALECTS[select.value]);
    [this.written, this.translated] = [source, target].map((dialect) => write(dialect, mask));
    const misread = this.written?.map((row, i) => row.map((entry, j) => drops(target, entry) === mask[i][j]));
    this.misread = misread?.flat().filter(Boolean).length;
    this.code = this.written && this.translated ? `may = (${source.ours}).expand(B, H, Lq, Lk)\nm = ${target.theirs}` : "";
    each(this.canvas.cells, (cell, i, j) => cell.setAttribute("aria-pressed", mask[i][j]));
    this.ruleLine.textContent = this.rule;
    this.fill(this.panels[0].table, source, this.written, misread);
    this.fill(this.panels[1].table, target, this.translated);
    this.codeLine.textContent = this.code || words.cannot;
    const empty = PLACES.filter((i) => !mask[i].includes(true));
    this.note.textContent = (misread ? words.misread(this.misread) : "") + (empty.length ? words.empty(empty) : "");
  }

  fill(table, dialect, entries, misread) {
    table.caption.textContent = `${dialect.shape} · ${dialect.keep} ✓ ${dialect.drop} ✗`;
    each(table.cells, (cell, i, j) => {
      const entry = entries?.[i]?.[j];
      cell.textContent = entry ?? "";
      cell.style.setProperty("--heat", entry === dialect.keep ? 0.5 : 0);
      cell.classList.toggle("abh-from", !!misread?.[i]?.[j]);
    });
  }
}

// A mask in a dialect; none where one row must do for all queries and the rows differ.
function write({ shape, keep, drop }, mask) {
  const entries = mask.map((row) => row.map((may) => (may ? keep : drop)));
  if (shape !== "[B, Lk]") return entries;
  return entries.every((row) => `${row}` === `${entries[0]}`) ? [entries[0]] : undefined;
}

define(MaskPainter);
