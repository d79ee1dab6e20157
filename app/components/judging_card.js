// The judging card: shows items leased ahead, takes decisions by key or mouse, and keeps every
// decision in an outbox until the server says that it is stored.
//
// The outbox is mirrored in localStorage, one entry per event, before it is sent; it is sent whole
// as component state, again and again until acknowledged by event id. The server stores an event
// once however often it comes. Texts reach the page through textContent only.
//
// What would surprise: Streamlit calls the default function at every rerun and may call a stale
// cleanup while the card is still there, so the card lives in a WeakMap by its parent element and
// goes only when that has left the page.

const CARDS = new WeakMap();
const RESEND_MS = 2500;
const SENT_AT_ONCE = 200;
const HISTORY = 30;
const STOP_WORDS = new Set(
  ("about after again all also and any are because been before being below between both but can " +
    "did does down each else for from had has have her here his how into its just more most not " +
    "now off once only other our out over own passage passages relevant same she should some such " +
    "text than that the their them then there these they this those through too under until very " +
    "was were what when where which while who whom why will with would you your").split(" "),
);

export default function (component) {
  const parent = component.parentElement;
  let card = CARDS.get(parent);
  if (!card) {
    card = new Card(parent);
    CARDS.set(parent, card);
  }
  card.receive(component);
  return () => setTimeout(() => card.leaveIfGone(), 0);
}

function make(tag, className, text) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
}

function newEventId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function wordsOf(text) {
  const found = text.toLowerCase().match(/[\p{L}\p{N}]+/gu) || [];
  return new Set(found.filter((word) => word.length > 2 && !STOP_WORDS.has(word)));
}

// An example of the training comes again in the next round; an item of the study never does.
function nameOf(id, round) {
  return round === undefined ? id : `${id}/${round}`;
}

function afterPaint(act) {
  requestAnimationFrame(() => {
    const channel = new MessageChannel();
    channel.port1.onmessage = act;
    channel.port2.postMessage(null);
  });
}

class Card {
  constructor(parent) {
    this.parent = parent;
    this.scope = null;
    this.queue = [];
    this.current = null;
    this.changing = false;
    this.highlight = false;
    this.sentAt = -Infinity;
    this.waiting = false;
    this.counter = 0;
    this.unanswered = 0;
    this.root = make("div", "card");
    parent.appendChild(this.root);
    this.onKey = (event) => this.key(event);
    this.onLeave = (event) => this.outbox.size && event.preventDefault();
    document.addEventListener("keydown", this.onKey, true);
    window.addEventListener("beforeunload", this.onLeave);
    this.timer = setInterval(() => this.resend(), 500);
    this.forget();
  }

  forget() {
    this.outbox = new Map();
    this.refused = new Map();
    this.decided = new Set();
    this.history = [];
    this.current = null;
    this.changing = false;
    this.asking = null; // the event of an example whose feedback is on its way
    this.feedback = null; // what was right, until it is read
  }

  leaveIfGone() {
    if ((this.parent.host || this.parent).isConnected) return;
    document.removeEventListener("keydown", this.onKey, true);
    window.removeEventListener("beforeunload", this.onLeave);
    clearInterval(this.timer);
    CARDS.delete(this.parent);
  }

  // ---- what comes from the server

  receive(component) {
    this.component = component;
    this.data = component.data;
    if (!this.root.isConnected) this.parent.appendChild(this.root);
    if (this.scope !== this.data.scope) {
      this.forget();
      this.scope = this.data.scope;
      this.load();
    }
    for (const [event, answer] of Object.entries(this.data.acknowledged)) {
      const entry = this.outbox.get(event);
      if (!entry) continue;
      this.outbox.delete(event);
      if (answer) this.refuse(event, answer);
      this.erase("out", event);
    }
    this.waiting = false;
    this.unanswered = 0;
    this.queue = this.data.items.filter((item) => !this.decided.has(nameOf(item.id, item.round)));
    const told = this.data.feedback.find((one) => one.event === this.asking);
    if (this.asking && !this.outbox.has(this.asking)) this.asking = null;
    const stillMine = this.current && this.queue.some((item) => item.id === this.current.id);
    if (told) this.showFeedback(told);
    else if (this.asking || this.feedback || this.changing || stillMine) this.drawAround();
    else this.show(this.queue[0] || null);
    if (this.outbox.size) this.send();
  }

  refuse(event, why) {
    this.refused.set(event, why);
    this.keep("refused", event, why);
  }

  // ---- the outbox and its mirror

  slot(part, event) {
    return `inf-card/${this.scope}/${part}/${event}`;
  }

  keep(part, event, value) {
    try {
      localStorage.setItem(this.slot(part, event), JSON.stringify(value));
    } catch {
      this.unmirrored = true; // a full or forbidden localStorage: the outbox still lives here
    }
  }

  erase(part, event) {
    try {
      localStorage.removeItem(this.slot(part, event));
    } catch {
      this.unmirrored = true;
    }
  }

  load() {
    const read = (part, into) => {
      const start = this.slot(part, "");
      const found = Object.keys(localStorage).filter((name) => name.startsWith(start));
      const entries = found.map((name) => [name, JSON.parse(localStorage.getItem(name))]);
      entries.sort((one, other) => String(one[1].decided).localeCompare(String(other[1].decided)));
      for (const [name, value] of entries) into.set(name.slice(start.length), value);
    };
    try {
      read("out", this.outbox);
      read("refused", this.refused);
    } catch {
      this.unmirrored = true;
    }
    for (const entry of this.outbox.values()) {
      if (entry.study === this.data.study) this.decided.add(nameOf(entry.item, entry.round));
    }
  }

  send() {
    if (this.waiting || !this.outbox.size) return;
    this.waiting = true;
    this.sentAt = performance.now();
    this.counter += 1;
    const events = [...this.outbox.values()].slice(0, SENT_AT_ONCE);
    this.component.setStateValue("outbox", { sent: this.counter, events });
  }

  // A server that was started again knows nothing of our fragment and ignores what comes from it:
  // every other time the whole page is asked for instead (see judging_card.py).
  resend() {
    this.leaveIfGone();
    if (this.outbox.size && performance.now() - this.sentAt > RESEND_MS) {
      this.unanswered += 1;
      this.waiting = false;
      if (this.unanswered % 2) this.send();
      else this.askForThePage();
    }
    this.drawBadge();
  }

  askForThePage() {
    this.sentAt = performance.now();
    document.dispatchEvent(new CustomEvent("inf-card-unanswered"));
  }

  // ---- deciding

  isTooSoon() {
    return this.paintedAt === null || performance.now() - this.paintedAt < this.data.dwell_ms;
  }

  decide(kind, position) {
    const item = this.current;
    if (!item || this.data.message || this.asking || this.feedback) return;
    if (this.isTooSoon()) {
      this.say("Too quick: read the item first.");
      return;
    }
    const event = newEventId();
    const isExample = item.round !== undefined;
    const entry = {
      event,
      kind: isExample ? "example" : kind,
      round: item.round,
      study: this.data.study,
      item: item.id,
      position,
      shown: this.paintedDate.toISOString(),
      decided: new Date().toISOString(),
      note: this.note,
      flagged: this.flagged,
      change: this.changing,
    };
    this.outbox.set(event, entry);
    this.keep("out", event, entry);
    this.decided.add(nameOf(item.id, item.round));
    if (isExample) {
      this.asking = event;
      this.drawBadge();
      this.say(`You chose ${this.inWords(entry)}.`);
      afterPaint(() => this.send());
      return;
    }
    this.history = this.history.filter((past) => past.item.id !== item.id);
    this.history.push({ item, entry });
    if (this.history.length > HISTORY) this.history.shift();
    this.changing = false;
    this.queue = this.queue.filter((other) => other.id !== item.id);
    this.show(this.queue[0] || null);
    this.say(kind === "skip" ? "Skipped." : `Answered: ${this.inWords(entry)}.`);
    afterPaint(() => this.send()); // what sending costs must not delay the next item
  }

  inWords(entry) {
    if (entry.kind === "skip") return "skipped";
    return entry.position === null ? "none of them" : `passage ${entry.position + 1}`;
  }

  undo() {
    const at = this.changing
      ? this.history.findIndex((past) => past.item.id === this.current.id) - 1
      : this.history.length - 1;
    if (at < 0) {
      this.say("Nothing further back.");
      return;
    }
    this.changing = true;
    this.show(this.history[at].item, this.history[at].entry);
  }

  goOn() {
    if (!this.changing && !this.feedback) return;
    this.changing = false;
    this.feedback = null;
    this.show(this.queue[0] || null);
  }

  showFeedback(told) {
    this.feedback = told;
    this.show(this.current);
    this.root.querySelector(".go")?.focus({ preventScroll: true });
  }

  key(event) {
    if (!this.root.isConnected || event.repeat || event.ctrlKey || event.metaKey || event.altKey)
      return;
    const target = event.composedPath()[0];
    const isTyping = target instanceof Element && target.closest("input, textarea, select");
    if (event.key === "Escape" && target === this.noteBox) return this.closeNote(event);
    if (isTyping || (target instanceof Element && target.isContentEditable)) return;
    if (document.querySelector('[role="dialog"]')) return;
    const act = this.actionOf(event.key);
    if (!act) return;
    event.preventDefault();
    event.stopPropagation();
    act();
  }

  actionOf(key) {
    if (key >= "1" && key <= "9") {
      const position = Number(key) - 1;
      const exists = this.current && position < this.current.candidates.length;
      return exists ? () => this.decide("pick", position) : null;
    }
    const isExample = this.current && this.current.round !== undefined;
    if (isExample && ["s", "f", "n", "z"].includes(key.toLowerCase())) return null;
    return {
      Enter: this.feedback ? () => this.goOn() : null,
      0: () => this.decide("pick", null),
      s: () => this.decide("skip", null),
      f: () => this.toggleFlag(),
      n: () => this.openNote(),
      z: () => this.undo(),
      h: () => this.toggleHighlight(),
      "?": () => this.toggleHelp(),
      Escape: this.changing || this.feedback ? () => this.goOn() : null,
    }[key.length === 1 ? key.toLowerCase() : key];
  }

  toggleFlag() {
    if (!this.current) return;
    this.flagged = !this.flagged;
    this.flagButton.setAttribute("aria-pressed", String(this.flagged));
    this.say(this.flagged ? "Flagged for the curator." : "Flag taken back.");
  }

  toggleHighlight() {
    this.highlight = !this.highlight;
    this.highlightButton?.setAttribute("aria-pressed", String(this.highlight));
    this.fillPassages();
  }

  toggleHelp() {
    this.help.hidden = !this.help.hidden;
  }

  openNote() {
    if (!this.current) return;
    this.noteRow.hidden = false;
    this.noteBox.focus();
  }

  closeNote(event) {
    event.preventDefault();
    event.stopPropagation();
    this.noteBox.blur();
    this.noteRow.hidden = !this.note;
  }

  // ---- drawing

  show(item, past) {
    const hadFocus = this.root.contains(this.focused());
    this.current = item;
    this.flagged = past ? past.flagged : false;
    this.note = past ? past.note : "";
    this.paintedAt = null;
    delete this.root.dataset.painted;
    this.root.replaceChildren();
    this.root.dataset.item = item ? String(item.id) : "";
    this.drawHead();
    if (item) this.drawItem(item, past);
    else this.drawNothing();
    this.drawAround();
    if (hadFocus) this.root.querySelector(".asked")?.focus({ preventScroll: true });
    if (!item) return;
    if (this.root.getBoundingClientRect().top < 0) this.root.scrollIntoView({ block: "start" });
    this.whenPainted(item);
  }

  focused() {
    return (this.parent.activeElement ?? document.activeElement) || null;
  }

  whenPainted(item) {
    afterPaint(() => {
      if (this.current !== item) return;
      this.paintedAt = performance.now();
      this.paintedDate = new Date();
      this.root.dataset.painted = String(this.paintedAt);
    });
  }

  drawHead() {
    const head = make("div", "head");
    this.progress = make("div", "progress");
    this.bar = make("div", "bar");
    this.bar.appendChild(make("span"));
    this.badge = make("span", "badge");
    this.badge.setAttribute("role", "status");
    head.append(this.progress, this.badge);
    this.problems = make("div", "problems");
    this.problems.setAttribute("role", "alert");
    this.root.append(head, this.bar, this.problems);
  }

  drawItem(item, past) {
    if (past) {
      const banner = make("div", "banner", `You answered: ${this.inWords(past)}. Choose again, or `);
      banner.appendChild(this.button("go on (Esc)", "link", () => this.goOn()));
      this.root.appendChild(banner);
    }
    if (this.feedback) this.drawFeedback();
    const asked = make("section", "asked");
    asked.tabIndex = -1;
    asked.setAttribute("aria-label", "Item");
    for (const [label, text] of [["Instruction", item.instruction], ["Query", item.query]]) {
      asked.appendChild(make("h3", "label", label));
      const body = make("p", "text", text);
      body.dir = "auto";
      asked.appendChild(body);
    }
    this.root.appendChild(asked);
    const list = make("ol", "passages");
    this.bodies = item.candidates.map((_, position) => {
      const row = make("li", "passage");
      const pick = this.button(String(position + 1), "pick", () => this.decide("pick", position));
      pick.setAttribute("aria-label", `Passage ${position + 1} is the most relevant`);
      if (past && past.kind === "pick" && past.position === position) row.classList.add("chosen");
      if (this.feedback && this.feedback.chosen === position) row.classList.add("chosen");
      if (this.feedback && this.feedback.right === position) row.classList.add("right");
      const body = make("div", "text");
      body.dir = "auto";
      body.tabIndex = 0;
      row.append(pick, body);
      list.appendChild(row);
      return body;
    });
    this.root.appendChild(list);
    this.fillPassages();
    this.drawTools(past);
  }

  drawFeedback() {
    const told = this.feedback;
    const words = (at) => (at === null ? "none of them" : `passage ${at + 1}`);
    const isRight = told.chosen === told.right;
    const banner = make("div", `banner ${isRight ? "good" : "bad"}`);
    banner.setAttribute("role", "status");
    const verdict = isRight
      ? `Right: ${words(told.right)}.`
      : `You chose ${words(told.chosen)}. Right is ${words(told.right)}.`;
    banner.appendChild(make("strong", "", verdict));
    if (told.explanation) banner.appendChild(make("p", "why", told.explanation));
    if (told.then) banner.appendChild(make("p", "then", told.then));
    banner.appendChild(this.button("Go on", "go", () => this.goOn(), "Enter"));
    this.root.appendChild(banner);
  }

  fillPassages() {
    if (!this.current) return;
    const asked = wordsOf(`${this.current.instruction} ${this.current.query}`);
    this.bodies.forEach((body, position) => {
      const text = this.current.candidates[position];
      if (!this.highlight) {
        body.textContent = text;
        return;
      }
      const pieces = text.split(/([\p{L}\p{N}]+)/u).map((piece, number) => {
        const isShared = number % 2 === 1 && asked.has(piece.toLowerCase());
        return isShared ? make("mark", "", piece) : document.createTextNode(piece);
      });
      body.replaceChildren(...pieces);
    });
  }

  drawTools(past) {
    const tools = make("div", "tools");
    this.flagButton = this.button("Flag", "tool", () => this.toggleFlag(), "F");
    this.flagButton.setAttribute("aria-pressed", String(this.flagged));
    this.highlightButton = this.button("Shared words", "tool", () => this.toggleHighlight(), "H");
    this.highlightButton.setAttribute("aria-pressed", String(this.highlight));
    const none = this.button("None of them", "none", () => this.decide("pick", null), "0");
    if (past && past.kind === "pick" && past.position === null) none.classList.add("chosen");
    const isExample = this.current.round !== undefined;
    const ofTheStudy = [
      this.button("Skip", "tool", () => this.decide("skip", null), "S"),
      this.flagButton,
      this.button("Note", "tool", () => this.openNote(), "N"),
      this.button("Undo", "tool", () => this.undo(), "Z"),
    ];
    tools.append(
      none,
      ...(isExample ? [] : ofTheStudy),
      this.highlightButton,
      this.button("Help", "tool", () => this.toggleHelp(), "?"),
    );
    this.noteRow = make("label", "note", "Note for the curator");
    this.noteBox = make("textarea");
    this.noteBox.rows = 2;
    this.noteBox.maxLength = 2000;
    this.noteBox.value = this.note;
    this.noteBox.addEventListener("input", () => (this.note = this.noteBox.value));
    this.noteRow.appendChild(this.noteBox);
    this.noteRow.hidden = !this.note;
    this.help = make("div", "help");
    this.help.hidden = true;
    for (const [key, words] of [
      ["1 – 9", "this passage is the most relevant"],
      ["0", "none of them"],
      ["S", "skip: somebody else gets the item"],
      ["F", "flag the item for the curator"],
      ["N", "write a note; Esc leaves it, the answer takes it along"],
      ["Z", "go back and change an answer; again for one further back"],
      ["H", "mark the words that passages share with instruction and query"],
      ["?", "this list"],
    ]) {
      const row = make("div");
      row.append(make("kbd", "", key), make("span", "", words));
      this.help.appendChild(row);
    }
    this.voice = make("div", "voice");
    this.voice.setAttribute("aria-live", "polite");
    this.root.append(tools, this.noteRow, this.help, this.voice);
  }

  drawNothing() {
    const words =
      this.data.message ||
      (this.data.finished
        ? "Thank you: nothing is left for you in this study."
        : "The next item is on its way …");
    this.root.appendChild(make("div", "nothing", words));
    const tools = make("div", "tools");
    if (this.history.length) {
      tools.appendChild(this.button("Undo", "tool", () => this.undo(), "Z"));
    }
    this.help = make("div");
    this.voice = make("div", "voice");
    this.voice.setAttribute("aria-live", "polite");
    this.root.append(tools, this.voice);
  }

  drawAround() {
    const unsent = [...this.outbox.values()].filter(
      (entry) => entry.study === this.data.study && entry.kind === "pick" && !entry.change,
    ).length;
    const done = this.data.done + unsent;
    const left = Math.max(0, this.data.left - unsent);
    const pace = this.data.pace === null ? "" : ` · ${Math.round(this.data.pace)} s each`;
    const training = this.data.training;
    this.progress.textContent = training
      ? `Training, round ${training.round + 1} · ${training.answered} of ${training.total} ` +
        `examples · ${Math.round(100 * training.pass_mark)} % have to be right`
      : `${done} answered · ${left} left for you${pace}`;
    const share = training ? training.answered / training.total : done / (done + left || 1);
    this.bar.firstChild.style.width = `${done + left || training ? 100 * share : 100}%`;
    this.problems.replaceChildren();
    for (const [event, why] of this.refused) {
      const line = make("div", "problem", `An answer was not taken: ${why} `);
      line.appendChild(
        this.button("dismiss", "link", () => {
          this.refused.delete(event);
          this.erase("refused", event);
          this.drawAround();
        }),
      );
      this.problems.appendChild(line);
    }
    if (!this.current && this.root.querySelector(".nothing")) {
      this.root.querySelector(".nothing").textContent =
        this.data.message ||
        (this.data.finished
          ? "Thank you: nothing is left for you in this study."
          : "The next item is on its way …");
    }
    this.drawBadge();
  }

  drawBadge() {
    if (!this.badge) return;
    const words = this.outbox.size ? `${this.outbox.size} unsent` : "saved";
    if (this.badge.textContent !== words) this.badge.textContent = words;
    this.badge.classList.toggle("unsent", this.outbox.size > 0);
  }

  say(words) {
    if (this.voice) this.voice.textContent = words;
  }

  button(words, className, act, key) {
    const button = make("button", className, words);
    button.type = "button";
    if (key) button.appendChild(make("kbd", "", key));
    button.addEventListener("click", (event) => {
      event.preventDefault();
      act();
    });
    return button;
  }
}
