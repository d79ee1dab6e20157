// Runs before anything is drawn: whether the menu starts folded, so that the page has its place from
// the first paint on. Streamlit folds the menu up to 768 px itself; up to 1000 px it starts folded
// here until the person opens it. Streamlit keeps the choice under CHOICE; MARK tells ours from the
// person's, so that a wider window shows the menu again. sidebar.js follows the window afterwards.
(() => {
  const CHOICE = "stSidebarCollapsed-";
  const MARK = "inf.sidebar.folded";
  const root = document.documentElement;
  const isNarrow = matchMedia("(min-width: 768.1px) and (max-width: 1000px)").matches;
  const isPhone = matchMedia("(max-width: 768px)").matches;
  try {
    if (isNarrow && localStorage.getItem(CHOICE) === null) {
      localStorage.setItem(CHOICE, "true");
      localStorage.setItem(MARK, "true");
    } else if (!isNarrow && !isPhone && localStorage.getItem(MARK) !== null) {
      localStorage.removeItem(MARK);
      if (localStorage.getItem(CHOICE) === "true") localStorage.removeItem(CHOICE);
    }
    const isFolded = localStorage.getItem(CHOICE) === "true";
    root.dataset.infMenu = isPhone || isFolded ? "folded" : "open";
    const width = Number.parseInt(localStorage.getItem("sidebarWidth"), 10);
    if (width) root.style.setProperty("--inf-menu-width", `${width}px`);
  } catch {
    root.dataset.infMenu = isPhone || isNarrow ? "folded" : "open"; // no storage allowed
  }
})();

// What was fetched for later (tables, figures) is evaluated a file at a time while nothing is drawn: the
// script of figures takes half a second, for which the first click on a page with one would wait. Where
// figures come first they are next after the title, while the server still counts. Not beside a card,
// whose keys are answered at once.
(() => {
  const PAUSE_MS = 100;
  const FIGURES = /\/(agreement|train|validators)?$/;
  const CARDS = /\/(judge|adjudicate)$/;
  const idle = window.requestIdleCallback ?? ((then) => setTimeout(then, PAUSE_MS));
  const has = (part) => document.querySelector(part) !== null;
  const isTime = (file) => {
    if (CARDS.test(location.pathname) || !has('[data-testid="stMain"] h1')) return false;
    if (FIGURES.test(location.pathname) && file.includes("/PlotlyChart.")) return true;
    return has('[data-test-script-state="notRunning"]') && !has('[data-testid="stSkeleton"]');
  };
  const evaluate = (files) => {
    if (!files.length) return;
    if (!isTime(files[0])) {
      setTimeout(evaluate, PAUSE_MS, files);
    } else {
      const next = () => evaluate(files.slice(1));
      idle(() => import(files[0]).then(next, next)); // what fails is fetched again where it is drawn
    }
  };
  addEventListener("DOMContentLoaded", () => {
    const links = document.querySelectorAll('link[rel="prefetch"]');
    evaluate([...links].map((link) => link.href));
  });
})();

// A click on a branch or place of Home's picture, which Plotly draws without links, is one on its link
// below it, which keys reach: the figure names the link's number.
addEventListener("click", ({ target }) => {
  if (!target.closest?.(".st-key-home-flow-figure")) return;
  const drawn = target.closest("path, rect, text")?.__data__;
  const place = (drawn?.link ?? drawn?.node)?.customdata;
  document.querySelectorAll(".st-key-home-branches a")[place]?.click();
}, true);

// A name of Home's picture that does not fit beside its place ends in a sign of that at the picture's
// edge; Plotly draws names whole, and anew with every new width.
{
  let drawn = 0;
  const cut = () => {
    for (const text of document.querySelectorAll(".st-key-home-flow-figure .node-label")) {
      const edge = text.ownerSVGElement.getBoundingClientRect().right;
      let name = text.textContent;
      if (text.children.length || text.dataset.cut === name) continue; // else endless: it is seen
      if (text.getBoundingClientRect().right <= edge) continue;
      while (name.length > 8 && text.getBoundingClientRect().right > edge) {
        name = name.slice(0, -1);
        text.textContent = `${name.trimEnd()} …`;
      }
      text.dataset.cut = text.textContent;
    }
  };
  new MutationObserver(() => {
    cancelAnimationFrame(drawn);
    drawn = requestAnimationFrame(cut);
  }).observe(document, { childList: true, subtree: true });
}
