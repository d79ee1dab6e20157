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
