// The switch of languages keeps the reader's place, and the choice is remembered for the root page.
(() => {
  const content = () => document.querySelector("article.bd-article");

  // The section at the top of the window: the last one whose heading has passed a line a third of the way down.
  function currentSection() {
    if (window.scrollY < 40) return "";
    let current = "";
    for (const section of content()?.querySelectorAll("section[id]") ?? []) {
      if (section.getBoundingClientRect().top <= window.innerHeight / 3) current = section.id;
    }
    return current;
  }

  function followSection(link) {
    const asked = decodeURIComponent(location.hash.slice(1));
    const section = standing && asked ? asked : currentSection();
    link.hash = section;
    try {
      localStorage.setItem("course-language", link.hreflang.slice(0, 2));
    } catch { /* a page that cannot remember still switches */ }
  }

  // Formulas and pictures that arrive late push the section away that the address asks for.
  // Stay with it until the reader moves.
  let standing = Boolean(location.hash);
  for (const moved of ["wheel", "touchmove", "keydown", "pointerdown"]) {
    const leave = (event) => { standing &&= Boolean(event.target.closest?.(".language-switch")); };
    addEventListener(moved, leave, { passive: true, capture: true });
  }
  addEventListener("hashchange", () => { standing = true; stay(); });
  function stay() {
    if (!standing || !location.hash) return;
    document.getElementById(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView({ behavior: "instant" });
  }

  function makeTablesReachable() {
    for (const box of document.querySelectorAll(".bd-article table, .bd-article pre, .bd-article div.math")) {
      if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    }
  }

  addEventListener("DOMContentLoaded", () => {
    for (const link of document.querySelectorAll("a.language-switch")) {
      for (const event of ["click", "auxclick", "focus", "pointerenter"]) {
        link.addEventListener(event, () => followSection(link));
      }
    }
    if (content()) new ResizeObserver(() => { stay(); makeTablesReachable(); }).observe(content());
  });
  addEventListener("load", () => { stay(); makeTablesReachable(); });
})();
