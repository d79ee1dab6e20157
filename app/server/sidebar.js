// Folds and unfolds the menu as the window becomes narrow or wide (boot.js does it at the start, and
// says how Streamlit and we keep it). Below 769 px a click in the menu folds it, as in Streamlit's
// own menu. Names menu, tabs and the current ones of them to screen readers.
const NARROW = "(min-width: 768.1px) and (max-width: 1000px)";
const PHONE = "(max-width: 768px)";
const CHOICE = "stSidebarCollapsed-";
const MARK = "inf.sidebar.folded";
const COLLAPSE = '[data-testid="stSidebarCollapseButton"] button';
const EXPAND = '[data-testid="stExpandSidebarButton"]';
const LINKS = '.st-key-frame-menu a, .st-key-frame-tabs a';

function fit(isNarrow) {
  const choice = localStorage.getItem(CHOICE);
  if (isNarrow && choice === null) {
    document.querySelector(COLLAPSE)?.click();
    localStorage.setItem(CHOICE, "true");
    localStorage.setItem(MARK, "true");
  } else if (!isNarrow && localStorage.getItem(MARK) !== null) {
    localStorage.removeItem(MARK);
    if (choice !== "true") return; // opened by the person
    document.querySelector(EXPAND)?.click();
    localStorage.removeItem(CHOICE);
  }
}

function foldAfterClick(event) {
  if (matchMedia(PHONE).matches && event.target.closest(".st-key-frame-menu a")) {
    setTimeout(() => document.querySelector(COLLAPSE)?.click());
  }
}

// Again after each change of the page: Streamlit loads what draws a link when it is first needed, so
// that on a slow machine the links come after the menu that holds them.
function nameParts() {
  const { infEntry: entry, infPage: page } = document.documentElement.dataset;
  for (const [part, label] of [["menu", "Menu"], ["tabs", "Tabs"]]) {
    const holder = document.querySelector(`.st-key-frame-${part}`);
    holder?.setAttribute("role", "navigation");
    holder?.setAttribute("aria-label", label);
  }
  for (const link of document.querySelectorAll(LINKS)) {
    const holder = link.closest('[class*="st-key-frame-entry-"], [class*="st-key-frame-tab-"]');
    const isCurrent = holder.classList.contains(`st-key-frame-entry-${entry}`)
      || holder.classList.contains(`st-key-frame-tab-${page}`);
    if (isCurrent) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

export default function ({ data }) {
  const root = document.documentElement.dataset;
  root.infEntry = data.entry;
  root.infPage = data.page;
  setTimeout(nameParts);
  if (root.infSidebar) return;
  root.infSidebar = "followed";
  let due = 0;
  const soon = () => {
    due ||= setTimeout(() => {
      due = 0;
      nameParts();
    }, 50);
  };
  new MutationObserver(soon).observe(document.body, { childList: true, subtree: true });
  const follow = (event) => setTimeout(() => fit(event.matches));
  matchMedia(NARROW).addEventListener("change", follow);
  document.addEventListener("click", foldAfterClick);
}
