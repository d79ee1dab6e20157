// Ctrl-K or ⌘K: a box to go to any page, dataset, run, study, release or group by name or number.
// The server lists what the person may open (/goto); text is written as text, never as markup.
(() => {
  const WAIT = 120; // milliseconds after a key before the server is asked
  let box, input, list, waiting, asked = 0;

  function build() {
    box = document.createElement("dialog");
    box.id = "inf-goto";
    box.setAttribute("aria-label", "Go to");
    input = document.createElement("input");
    input.type = "search";
    input.placeholder = "Go to a page, or a dataset, run, study, release or group by name or number";
    input.setAttribute("role", "combobox");
    input.setAttribute("aria-expanded", "true");
    input.setAttribute("aria-controls", "inf-goto-list");
    list = document.createElement("ul");
    list.id = "inf-goto-list";
    list.setAttribute("role", "listbox");
    box.append(input, list);
    document.body.append(box);
    input.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(ask, WAIT);
    });
    input.addEventListener("keydown", choose);
    box.addEventListener("click", (event) => event.target === box && box.close());
  }

  async function ask() {
    const turn = ++asked;
    let found = [];
    let problem = "";
    try {
      const answer = await fetch(`/goto?q=${encodeURIComponent(input.value)}`);
      if (answer.ok) found = (await answer.json()).data;
      else problem = answer.status === 401 ? "Sign in again." : "The server cannot answer now.";
    } catch {
      problem = "The server cannot be reached.";
    }
    if (turn === asked) show(found, problem || "Nothing with this name or number.");
  }

  function show(found, nothing) {
    list.replaceChildren(...found.map((each, place) => {
      const row = document.createElement("li");
      row.id = `inf-goto-${place}`;
      row.setAttribute("role", "option");
      const link = document.createElement("a");
      link.href = each.url;
      link.tabIndex = -1;
      const kind = document.createElement("small");
      kind.textContent = each.kind;
      link.append(each.label, kind);
      row.append(link);
      return row;
    }));
    if (!found.length) {
      const row = document.createElement("li");
      row.textContent = nothing;
      list.append(row);
    }
    mark(0);
  }

  function mark(place) {
    const rows = [...list.querySelectorAll('[role="option"]')];
    for (const [number, row] of rows.entries()) {
      row.setAttribute("aria-selected", String(number === place));
      if (number === place) row.scrollIntoView({ block: "nearest" });
    }
    if (rows[place]) input.setAttribute("aria-activedescendant", rows[place].id);
    else input.removeAttribute("aria-activedescendant");
  }

  function choose(event) {
    const rows = [...list.querySelectorAll('[role="option"]')];
    const now = rows.findIndex((row) => row.getAttribute("aria-selected") === "true");
    if (event.key === "ArrowDown") mark(Math.min(now + 1, rows.length - 1));
    else if (event.key === "ArrowUp") mark(Math.max(now - 1, 0));
    else if (event.key === "Enter") rows[now]?.querySelector("a").click();
    else return;
    event.preventDefault();
  }

  function toggle() {
    if (!box) build();
    if (box.open) return box.close();
    input.value = "";
    // the box stands outside of the app, whose theme a person may have chosen
    box.style.colorScheme = getComputedStyle(document.querySelector(".stApp")).colorScheme;
    box.showModal();
    ask();
  }

  document.addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey)) return;
    if (event.altKey || event.shiftKey) return;
    event.preventDefault();
    toggle();
  }, true);
  document.addEventListener("click", (event) => {
    if (event.target.closest?.(".inf-goto-open")) toggle();
  });
})();
