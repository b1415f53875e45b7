// What the explorables share: an element that starts when it comes near, builders, and a little algebra.

// A subclass has build(), which makes controls and tables once, and update(), which computes its state and shows it.
export class Explorable extends HTMLElement {
  static words = { en: {}, zh: {} };

  connectedCallback() {
    const near = new IntersectionObserver((seen) => {
      if (!seen.some((entry) => entry.isIntersecting)) return;
      near.disconnect();
      this.words = this.constructor.words[this.closest("[lang]")?.lang.startsWith("zh") ? "zh" : "en"];
      this.replaceChildren(); // the fallback has done its work
      this.build();
      this.update();
      this.dataset.started = "";
    }, { rootMargin: "400px" });
    near.observe(this);
  }
}

export const define = (element) => customElements.define(element.tag, element);

// h("p", { class: "note", onclick: act }, "text", child)
export function h(tag, given = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(given)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== false && value != null) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children);
  return element;
}

const valued = (control, get) => Object.defineProperty(control, "value", { get });

// A range with a name; `say` shows and speaks what its value means.
export function slider(name, range, change) {
  const input = h("input", { type: "range", ...range, oninput: change });
  const output = h("output");
  const say = (text) => input.setAttribute("aria-valuetext", (output.textContent = text));
  const box = h("label", { class: "abh-slider" }, h("span", {}, name), input, output);
  return valued(Object.assign(box, { say }), () => input.valueAsNumber);
}

export function tick(name, checked, change) {
  const input = h("input", { type: "checkbox", checked, onchange: change });
  return valued(h("label", { class: "abh-tick" }, input, h("span", {}, name)), () => input.checked);
}

// One of several [value, text].
let groups = 0;
export function choice(name, options, chosen, change) {
  const group = `abh-choice-${++groups}`;
  const radios = options.map(([value, text]) => {
    const input = h("input", { type: "radio", name: group, value, checked: value === chosen, onchange: change });
    return h("label", {}, input, h("span", {}, text));
  });
  const box = h("fieldset", { class: "abh-choice" }, h("legend", {}, name), ...radios);
  return valued(box, () => box.querySelector(":checked").value);
}

export const button = (text, onclick) => h("button", { type: "button", class: "abh-button", onclick }, text);

// A table of cells [row][column]; with `act` they are buttons among which the arrow keys move.
export function grid(name, rows, columns, act) {
  const cells = [];
  const body = h("tbody");
  for (let i = 0; i < rows; i++) {
    cells.push(Array.from({ length: columns }, (_, j) =>
      (act ? h("button", { type: "button", tabindex: i || j ? -1 : 0, onclick: () => act(i, j) }) : h("span"))));
    body.append(h("tr", {}, ...cells[i].map((cell) => h("td", {}, cell))));
  }
  const table = h("table", { class: "abh-grid" }, h("caption", {}, name), body);
  if (act) table.addEventListener("keydown", (event) => walk(event, cells));
  return Object.assign(table, { cells });
}

const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
function walk(event, cells) {
  const step = STEPS[event.key];
  if (!step) return;
  event.preventDefault();
  const i = cells.findIndex((row) => row.includes(event.target));
  const next = cells[i + step[0]]?.[cells[i].indexOf(event.target) + step[1]];
  if (!next) return;
  event.target.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
}

// A number in a cell, tinted by its size beside `most`: blue above zero, orange below.
export function heat(cell, value, most = 1, digits = 2) {
  cell.textContent = number(value, digits);
  cell.style.setProperty("--heat", Number.isFinite(value) ? Math.min(1, Math.abs(value) / most).toFixed(3) : 0);
  cell.classList.toggle("abh-minus", value < 0);
}

export function number(value, digits = 2) {
  if (value === -Infinity) return "−∞";
  return value.toFixed(digits).replace(/^-(?=[0.]*$)/, "").replace("-", "−");
}

export const sum = (row) => row.reduce((total, value) => total + value, 0);
export const transpose = (a) => a[0].map((_, j) => a.map((row) => row[j]));
export const matmul = (a, b) => a.map((row) => b[0].map((_, j) => sum(row.map((value, k) => value * b[k][j]))));

// Weights of one row of scores; a row that may look nowhere (all −∞) gets zeros.
export function softmax(scores) {
  const largest = Math.max(...scores);
  if (largest === -Infinity) return scores.map(() => 0);
  const powers = scores.map((score) => Math.exp(score - largest));
  const total = sum(powers);
  return powers.map((power) => power / total);
}
