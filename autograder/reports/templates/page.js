"use strict";
const page = document.documentElement;
const button = document.getElementById("language");
const title = document.querySelector("title");

function speak(lang) {
  page.lang = lang;
  const other = lang === "en" ? "zh-CN" : "en";
  button.lang = other;
  button.textContent = other === "en" ? "English" : "中文";
  if (title.dataset.en) document.title = title.dataset[lang.slice(0, 2)];
}

button.addEventListener("click", () => speak(page.lang === "en" ? "zh-CN" : "en"));
button.hidden = false;
speak(navigator.language.toLowerCase().startsWith("zh") ? "zh-CN" : "en");

function value(row, column) {
  const cell = row.cells[column];
  return "number" in cell.dataset ? Number(cell.dataset.number) : cell.innerText;
}

function sort(header) {
  const table = header.closest("table");
  const direction = header.ariaSort === "ascending" ? "descending" : "ascending";
  for (const each of table.querySelectorAll("th[aria-sort]")) each.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", direction);
  const sign = direction === "ascending" ? 1 : -1;
  const keyed = [...table.tBodies[0].rows].map((row) => [value(row, header.cellIndex), row]);
  const order = new Intl.Collator(page.lang, { numeric: true });
  keyed.sort(([a], [b]) => sign * (typeof a === "number" ? a - b : order.compare(a, b)));
  table.tBodies[0].append(...keyed.map(([, row]) => row));
}

for (const each of document.querySelectorAll("button.sort")) {
  each.addEventListener("click", () => sort(each.closest("th")));
}
