// Loaded on the search page before Sphinx's own script, which asks for these two names.

// Chapters before the glossary, and both before pages that only list.
var Scorer = {
  objNameMatch: 11, objPartialMatch: 6, objPrio: { 0: 15, 1: 5, 2: -5 }, objPrioDefault: 0,
  title: 15, partialTitle: 7, term: 5, partialTerm: 2,
  score: ([page, , , , score]) => score * (/^\d\d_/.test(page) ? 2 : page === "glossary" ? 1 : 0.5),
};

// Chinese is written without spaces: cut a query into the longest words that the index knows.
if (document.documentElement.lang.startsWith("zh")) {
  var splitQuery = (query) => query.split(/[^\p{L}\p{N}_]+/u).flatMap((piece) =>
    piece.split(/(\p{Script=Han}+)/u).flatMap((run) => (/\p{Script=Han}/u.test(run) ? longestWords(run) : run))
  ).filter(Boolean);
}

function longestWords(run) {
  const { terms, titleterms } = Search._index;
  const known = (word) => Object.hasOwn(terms, word) || Object.hasOwn(titleterms, word);
  const words = [];
  for (let start = 0; start < run.length;) {
    let end = run.length;
    while (end > start + 1 && !known(run.slice(start, end))) end -= 1;
    words.push(run.slice(start, end));
    start = end;
  }
  return words;
}
