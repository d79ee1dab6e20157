// Shared by the judging card and the workbench: each is a class that extends this one, in a file
// that follows this one in the same module (see outbox_card.py).
//
// Every decision stays in an outbox until the server confirms that it is stored. The outbox is
// mirrored in localStorage, one entry per event, before it is sent; it is sent completely as
// component state and resent until every event is acknowledged. The server stores an event once,
// however often it arrives. Texts reach the page through textContent only.

const RESEND_MS = 2500;
const HISTORY = 30;
const SPOKEN_KEYS = { Esc: "Escape", "↵": "Enter", "Ctrl ↵": "Control+Enter" };

function newEventId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function afterPaint(act) {
  requestAnimationFrame(() => {
    const channel = new MessageChannel();
    channel.port1.onmessage = act;
    channel.port2.postMessage(null);
  });
}

function listOfKeys(keys) {
  const list = make("div", "help");
  list.hidden = true;
  for (const [key, label] of keys) {
    const row = make("div");
    row.append(make("kbd", "", key), make("span", "", label));
    list.appendChild(row);
  }
  return list;
}

// A subclass has `receive(component)`, `key(event)`, `drawAround()`, `problem(event, entry)`,
// `wasDecided(entry)` for what the mirror still holds, and `alongside()` for what is sent with it.
class OutboxCard {
  constructor(parent, { mirror, sentAtOnce }) {
    this.parent = parent;
    this.mirror = mirror;
    this.sentAtOnce = sentAtOnce;
    this.scope = null;
    this.sentAt = -Infinity;
    this.waiting = false;
    this.counter = 0;
    this.unanswered = 0;
    // the live region stays in place while the card above it is drawn anew: one that is replaced
    // together with its text is not announced
    this.frame = make("div", "frame");
    this.root = make("div", "card");
    this.voice = make("div", "voice");
    this.voice.setAttribute("role", "status");
    this.frame.append(this.root, this.voice);
    parent.appendChild(this.frame);
    this.leaving = false;
    this.onKey = (event) => this.key(event);
    this.onLeave = (event) => this.outbox.size && !this.leaving && event.preventDefault();
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
  }

  leaveIfGone() {
    if ((this.parent.host || this.parent).isConnected) return;
    document.removeEventListener("keydown", this.onKey, true);
    window.removeEventListener("beforeunload", this.onLeave);
    clearInterval(this.timer);
    CARDS.delete(this.parent);
  }

  // ---- data from the server, starting with the events it has answered

  takeAnswers(component) {
    this.component = component;
    this.data = component.data;
    if (!this.frame.isConnected) this.parent.appendChild(this.frame);
    if (this.scope !== this.data.scope) {
      this.forget();
      this.scope = this.data.scope;
      this.adopt(this.data.formerly);
      this.load();
    }
    for (const [event, answer] of Object.entries(this.data.acknowledged)) {
      const entry = this.outbox.get(event);
      if (!entry) continue;
      this.outbox.delete(event);
      if (answer) this.refuse(event, { ...entry, why: answer });
      this.erase("out", event);
    }
    this.waiting = false;
    this.unanswered = 0;
  }

  refuse(event, entry) {
    this.refused.set(event, entry);
    this.keep("refused", event, entry);
  }

  // ---- the outbox and its mirror

  post(event, entry) {
    this.outbox.set(event, entry);
    this.keep("out", event, entry);
  }

  slot(part, event) {
    return `${this.mirror}/${this.scope}/${part}/${event}`;
  }

  keep(part, event, value) {
    try {
      localStorage.setItem(this.slot(part, event), JSON.stringify(value));
    } catch {
      this.unmirrored = true; // localStorage is full or forbidden; the outbox stays in memory
    }
  }

  erase(part, event) {
    try {
      localStorage.removeItem(this.slot(part, event));
    } catch {
      this.unmirrored = true;
    }
  }

  // What an earlier version left under a scope that was made of the person's name.
  adopt(formerly) {
    const before = `${this.mirror}/${formerly}/`;
    const now = `${this.mirror}/${this.scope}/`;
    try {
      for (const storage of [localStorage, sessionStorage]) {
        for (const name of Object.keys(storage).filter((one) => one.startsWith(before))) {
          storage.setItem(now + name.slice(before.length), storage.getItem(name));
          storage.removeItem(name);
        }
      }
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
    for (const entry of this.outbox.values()) this.wasDecided(entry);
  }

  send() {
    if (this.waiting) return;
    this.waiting = true;
    this.sentAt = performance.now();
    this.counter += 1;
    const events = [...this.outbox.values()].slice(0, this.sentAtOnce);
    this.component.setStateValue("outbox", { sent: this.counter, events, ...this.alongside() });
  }

  // A restarted server does not know our fragment and ignores its messages: every second attempt
  // therefore requests a rerun of the whole page (see outbox_card.py).
  resend() {
    this.leaveIfGone();
    if (this.isPending() && performance.now() - this.sentAt > RESEND_MS) {
      this.unanswered += 1;
      this.waiting = false;
      if (this.unanswered % 2) this.send();
      else this.requestPage();
    }
    this.drawBadge();
  }

  isPending() {
    return this.outbox.size > 0;
  }

  requestPage() {
    this.sentAt = performance.now();
    document.dispatchEvent(new CustomEvent("inf-card-unanswered"));
  }

  // ---- the guard against accidental keys: the minimum time counts from when a group was painted

  isTooSoon() {
    return this.paintedAt === null || performance.now() - this.paintedAt < this.data.dwell_ms;
  }

  startDwell(shown) {
    if (this.root.getBoundingClientRect().top < 0) this.root.scrollIntoView({ block: "start" });
    afterPaint(() => this.painted(shown));
  }

  painted(shown) {
    if (this.current !== shown) return;
    this.paintedAt = performance.now();
    this.paintedDate = new Date();
    this.root.dataset.painted = String(this.paintedAt);
  }

  remember(past, isSame) {
    this.history = this.history.filter((other) => !isSame(other));
    this.history.push(past);
    if (this.history.length > HISTORY) this.history.shift();
  }

  // ---- drawing

  clear() {
    this.paintedAt = null;
    delete this.root.dataset.painted;
    this.root.replaceChildren();
  }

  hasFocus() {
    return this.root.contains(this.parent.activeElement ?? document.activeElement);
  }

  drawHead(...between) {
    const head = make("div", "head");
    this.progress = make("div", "progress");
    this.badge = make("span", "badge");
    head.append(this.progress, this.badge);
    this.problems = make("div", "problems");
    this.problems.setAttribute("role", "alert");
    this.root.append(head, ...between, this.problems);
  }

  drawProblems() {
    const lines = [...this.refused].map(([event, entry]) => {
      const line = this.problem(event, entry);
      const dismiss = () => {
        this.refused.delete(event);
        this.erase("refused", event);
        this.drawAround();
      };
      line.appendChild(this.button(this.words.dismiss, "link", dismiss));
      return line;
    });
    this.problems.replaceChildren(...lines);
  }

  drawBadge() {
    if (!this.badge) return;
    const count = this.outbox.size;
    const label = count ? this.words.unsent.replace("{count}", count) : this.words.saved;
    if (this.badge.textContent !== label) this.badge.textContent = label;
    this.badge.classList.toggle("unsent", this.outbox.size > 0);
  }

  // Texts of this file; a card in several languages has its own.
  get words() {
    return { dismiss: "dismiss", unsent: "{count} unsent", saved: "saved" };
  }

  // `isSeen`: the card itself shows it, and the line below would repeat it.
  say(message, isSeen = false) {
    this.voice.textContent = message;
    this.voice.classList.toggle("spoken", isSeen);
  }

  button(label, className, act, key) {
    const button = make("button", className, label);
    button.type = "button";
    if (key) {
      const shown = make("kbd", "", key);
      shown.setAttribute("aria-hidden", "true"); // the name stays "Skip", not "SkipS"
      button.setAttribute("aria-keyshortcuts", SPOKEN_KEYS[key] || key);
      button.appendChild(shown);
    }
    button.addEventListener("click", (event) => {
      event.preventDefault();
      act();
    });
    return button;
  }
}
