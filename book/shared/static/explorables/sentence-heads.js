// A small trained model reads a sentence, here in the page: the weights of its four heads, and its guess of the next word.
import { Explorable, button, choice, define, grid, h, matmul, number, softmax, sum, transpose } from "./base.js";

const data = await (await fetch(new URL("sentence-heads.json", import.meta.url))).json();
const LONGEST = data.shapes.near[2], HEADS = data.shapes.near[1];
const START = [0, 1, 7, 2, 8, 13, 4, 11, 15, 1, 7, 16, 2];
const isAnimal = (word) => word > 0 && word < 7, isVerb = (word) => word > 6 && word < 13;
const closes = (word) => word === 14 || word === 16;

// The parameters by name, as nested lists: book/train_sentence_heads.py wrote them.
function parameters() {
  const numbers = Array.from(Int8Array.from(atob(data.bytes), (letter) => letter.charCodeAt(0)), (byte) => byte * data.unit);
  const shaped = ([size, ...inner]) => (inner.length ? Array.from({ length: size }, () => shaped(inner)) : numbers.splice(0, size));
  return Object.fromEntries(Object.entries(data.shapes).map(([name, shape]) => [name, shaped(shape)]));
}

// Weights [layer][head][query][key], and for each place the chances of the next word.
function read(ids, { words, near, layers, guess }) {
  let x = ids.map((id) => words[id]);
  const maps = layers.map(([wQ, wK, wV, wO], layer) => {
    const [q, k, v] = [wQ, wK, wV].map((w) => matmul(x, w));
    const width = wQ.length / HEADS;
    const part = (rows, head) => rows.map((row) => row.slice(head * width, (head + 1) * width));
    const weights = near[layer].map((bias, head) => matmul(part(q, head), transpose(part(k, head))).map((row, i) =>
      softmax(row.map((score, j) => (j > i ? -Infinity : score / Math.sqrt(width) + bias[i - j])))));
    const heads = weights.map((table, head) => matmul(table, part(v, head)));
    const added = matmul(ids.map((_, i) => heads.flatMap((rows) => rows[i])), wO);
    x = x.map((row, i) => row.map((value, c) => value + added[i][c]));
    return weights;
  });
  return { maps, chances: matmul(x, guess).map(softmax) };
}

// Shares with their places, the largest first.
const ranked = (shares) => shares.map((share, place) => [share, place]).sort((a, b) => b[0] - a[0]);

// Where a head of each trade would look from place i: at the animal of a verb, at what this animal did before, at the open bracket.
const TRADES = {
  before: (ids, i) => (isVerb(ids[i]) ? [i - 1] : []),
  again: (ids, i) => (isAnimal(ids[i]) ? ids.flatMap((id, j) => (j < i - 1 && id === ids[i] ? [j + 1] : [])) : []),
  bracket: (ids, i) => {
    const open = [];
    ids.slice(0, i + 1).forEach((id, j) => (id > 12 && (closes(id) ? open.pop() : open.push(j))));
    return isVerb(ids[i]) || closes(ids[i]) ? open.slice(-1) : [];
  },
};

class SentenceHeads extends Explorable {
  static tag = "abh-sentence-heads";
  static words = {
    en: {
      list: "^ cat dog bird fish mouse horse runs sings sleeps eats swims jumps ( ) [ ]".split(" "),
      head: "layer · head", grid: "Row: who looks. Column: at whom. Click a row.", add: "Add a word", back: "⌫ last word", write: "Model, go on",
      full: `This model reads no more than ${LONGEST} words. Take some away first.`,
      before: "verb looks at its animal", again: "animal looks at what it did before", bracket: "word looks at the open bracket",
      note: (word, seen, next) => `«${word}» looks at ${seen}. The model expects next: ${next}.`,
    },
    zh: {
      list: "^ 猫 狗 鸟 鱼 鼠 马 跑 唱 睡 吃 游 跳 ( ) [ ]".split(" "),
      head: "层 · 头", grid: "行：谁在看；列：看谁。点一行试试。", add: "添一个词", back: "⌫ 末词", write: "让模型续写",
      full: `这个模型最多读 ${LONGEST} 个词，请先删去几个。`,
      before: "动词看它的动物", again: "动物看自己上次做的事", bracket: "词看还没关上的括号",
      note: (word, seen, next) => `「${word}」看的是：${seen}。模型预计下一个词：${next}。`,
    },
  };

  build() {
    const { words } = this;
    this.model = parameters();
    this.ids = [...START];
    this.head = choice(words.head, ["1 · 1", "1 · 2", "2 · 1", "2 · 2"].map((name, value) => [String(value), name]), "2", () => this.show());
    this.table = h("div");
    this.facts = h("dl", { class: "abh-readout" });
    this.note = h("p", { class: "abh-note", "aria-live": "polite" });
    const keys = words.list.slice(1).map((word, i) => button(word, () => this.edit([...this.ids, i + 1])));
    this.append(
      this.head,
      h("div", { class: "abh-row" }, this.table, this.facts), this.note,
      h("div", { class: "abh-keys", role: "group", "aria-label": words.add }, ...keys,
        button(words.back, () => this.edit(this.ids.slice(0, -1))),
        button(words.write, () => this.edit([...this.ids, ranked(this.chances.at(-1))[0][1]]))),
    );
  }

  edit(ids) {
    if (ids.length > LONGEST) this.note.textContent = this.words.full;
    else if (ids.length) {
      this.ids = ids;
      this.update();
    }
  }

  update() {
    const { ids, words } = this;
    Object.assign(this, read(ids, this.model));
    this.place = ids.length - 1;
    this.grid = grid(words.grid, ids.length, ids.length, (i) => { this.place = i; this.show(); });
    const names = ids.map((id) => words.list[id]);
    this.grid.tBodies[0].before(h("thead", {}, h("tr", {}, h("td"), ...names.map((name) => h("th", { scope: "col" }, name)))));
    [...this.grid.tBodies[0].rows].forEach((row, i) => row.prepend(h("th", { scope: "row" }, names[i])));
    this.grid.classList.add("abh-small");
    this.table.replaceChildren(this.grid);
    this.show();
  }

  show() {
    const { ids, words, place } = this;
    const chosen = Number(this.head.value);
    const weights = this.maps[Math.floor(chosen / HEADS)][chosen % HEADS];
    const name = (i) => words.list[ids[i]];
    ids.forEach((_, i) => {
      this.grid.tBodies[0].rows[i].classList.toggle("abh-chosen", i === place);
      weights[i].forEach((weight, j) => {
        const cell = this.grid.cells[i][j];
        cell.style.setProperty("--heat", weight.toFixed(3));
        cell.ariaLabel = `${name(i)} → ${name(j)} ${number(weight)}`;
      });
    });
    this.trades = Object.entries(TRADES).map(([trade, looks]) => {
      const hits = ids.map((_, i) => looks(ids, i).map((j) => weights[i][j])).filter((found) => found.length).map(sum);
      return [words[trade], hits.length ? sum(hits) / hits.length : NaN];
    });
    this.facts.replaceChildren(...this.trades.map(([text, share]) => h("div", {}, h("dt", {}, text), h("dd", {}, Number.isNaN(share) ? "–" : number(share)))));
    const said = (pairs, text) => pairs.slice(0, 3).filter(([share]) => share > 0.05).map(([share, which]) => `${text(which)} ${number(share)}`).join(" · ");
    this.note.textContent = words.note(name(place), said(ranked(weights[place]), name), said(ranked(this.chances[place]), (word) => words.list[word]));
  }
}
define(SentenceHeads);
