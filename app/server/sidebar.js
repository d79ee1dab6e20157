// Folds the sidebar between 769 and 1000 px until the person opens it: Streamlit's "auto" folds it
// only up to 768 px. Streamlit keeps the choice in localStorage; MARK tells ours from the person's,
// so that a wider window shows the sidebar again.
const NARROW = "(min-width: 768.1px) and (max-width: 1000px)";
const CHOICE = "stSidebarCollapsed-";
const MARK = "inf.sidebar.folded";
const COLLAPSE = '[data-testid="stSidebarCollapseButton"] button';
const EXPAND = '[data-testid="stExpandSidebarButton"]';

function fit(isNarrow) {
  const choice = localStorage.getItem(CHOICE);
  if (isNarrow && choice === null) {
    const button = document.querySelector(COLLAPSE);
    if (button === null) return;
    button.click();
    localStorage.setItem(CHOICE, "true");
    localStorage.setItem(MARK, "true");
  } else if (!isNarrow && localStorage.getItem(MARK) !== null) {
    localStorage.removeItem(MARK);
    if (choice !== "true") return; // opened by the person
    document.querySelector(EXPAND)?.click();
    localStorage.removeItem(CHOICE);
  }
}

export default function () {
  if (document.documentElement.dataset.infSidebar) return;
  const media = matchMedia(NARROW);
  fit(media.matches);
  document.documentElement.dataset.infSidebar = "fitted";
  media.addEventListener("change", (event) => setTimeout(() => fit(event.matches)));
}
