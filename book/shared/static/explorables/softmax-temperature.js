// One query and eight keys: scores, divided, then shared out. Width makes the scores large; divisor and temperature tame them.
import { Explorable, choice, define, h, heat, number, slider, softmax, sum } from "./base.js";

const DIRECTIONS = [1.7, -0.9, 0.7, -1.5, 0.2, 0.9, -0.4, -0.7]; // q·k, counted in standard deviations
const DEAD = 0.99;

class SoftmaxTemperature extends Explorable {
  static tag = "abh-softmax-temperature";
  static words = {
    en: {
      width: "width dₖ", divisor: "divide by", temperature: "temperature T", key: "key", weight: "weight",
      largest: "largest weight", heard: "keys really heard", slope: "slope left",
      dead: "Saturated: one key has more than 99 % of the weight, and almost no slope is left to learn from.",
      flat: "Flat: all keys are heard almost equally, whatever they score.",
      lively: "Alive: the best key leads, and the others can still gain on it.",
    },
    zh: {
      width: "宽度 dₖ", divisor: "除以", temperature: "温度 T", key: "键", weight: "权重",
      largest: "最大权重", heard: "真正听到的键数", slope: "剩余斜率",
      dead: "已经饱和：一个键拿走了 99% 以上的权重，斜率所剩无几，学不动了。",
      flat: "过于平坦：不管分数多少，各个键几乎一样响。",
      lively: "状态正好：最匹配的键领先，其余的键还追得上。",
    },
  };

  build() {
    const { words } = this;
    const changed = () => this.update();
    this.width = slider(words.width, { min: 0, max: 5, step: 1, value: 3 }, changed);
    this.warmth = slider(words.temperature, { min: -3, max: 3, step: 0.25, value: 0 }, changed);
    this.divisor = choice(words.divisor, [["one", "1"], ["root", "√dₖ"]], "one", changed);
    this.rows = DIRECTIONS.map(() => ({ score: h("span"), scaled: h("span"), weight: h("span"), bar: h("i") }));
    this.readout = h("dl", { class: "abh-readout" });
    this.note = h("p", { class: "abh-note", "aria-live": "polite" });
    this.append(
      h("div", { class: "abh-row" }, this.width, this.warmth, this.divisor),
      h("div", { class: "abh-row" }, this.table(), this.readout),
      this.note,
    );
  }

  table() {
    const title = (text) => h("th", { scope: "col" }, text);
    this.formula = title("");
    const head = h("tr", {}, title(this.words.key), title("q·k"), this.formula, title(this.words.weight), h("td"));
    const body = this.rows.map((row, j) => h("tr", {},
      h("th", { scope: "row" }, String(j + 1)),
      ...[row.score, row.scaled, row.weight].map((cell) => h("td", {}, cell)),
      h("td", { class: "abh-track" }, row.bar)));
    return h("table", { class: "abh-grid" }, h("thead", {}, head), h("tbody", {}, ...body));
  }

  update() {
    const width = 4 ** this.width.value;
    const temperature = 2 ** this.warmth.value;
    const divisor = this.divisor.value === "root" ? Math.sqrt(width) : 1;
    this.scores = DIRECTIONS.map((direction) => direction * Math.sqrt(width)); // as the law of this chapter has it
    this.scaled = this.scores.map((score) => score / (divisor * temperature));
    this.weights = softmax(this.scaled);
    this.entropy = -sum(this.weights.map((weight) => (weight > 0 ? weight * Math.log(weight) : 0)));
    this.slope = 1 - sum(this.weights.map((weight) => weight * weight)); // the trace of the Jacobian diag(p) − p pᵀ
    this.width.say(String(width));
    this.warmth.say(number(temperature, 2));
    this.formula.textContent = this.divisor.value === "root" ? "q·k / (T√dₖ)" : "q·k / T";
    this.show();
  }

  show() {
    const { words, weights } = this;
    const largest = Math.max(...weights);
    const steepest = Math.max(...this.scores);
    this.rows.forEach((row, j) => {
      heat(row.score, this.scores[j], steepest, 1);
      heat(row.scaled, this.scaled[j], steepest, 1);
      heat(row.weight, weights[j], 1, 3);
      row.bar.style.width = `${100 * weights[j]}%`;
    });
    const facts = [[words.largest, number(largest, 3)], [words.heard, number(Math.exp(this.entropy), 1)], [words.slope, number(this.slope, 3)]];
    this.readout.replaceChildren(...facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
    this.note.textContent = largest > DEAD ? words.dead : largest < 0.2 ? words.flat : words.lively;
  }
}
define(SoftmaxTemperature);
