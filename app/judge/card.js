// The judging card: shows items leased ahead and takes decisions by key or mouse. How a decision
// reaches the server is in outbox_card.js, which comes before this file in the same module.

const STOP_WORDS = new Set(
  ("about after again all also and any are because been before being below between both but can " +
    "did does down each else for from had has have her here his how into its just more most not " +
    "now off once only other our out over own passage passages relevant same she should some such " +
    "text than that the their them then there these they this those through too under until very " +
    "was were what when where which while who whom why will with would you your").split(" "),
);

const KEYS = [
  ["1 – 9", "this passage is the most relevant"],
  ["0", "none of them"],
  ["S", "skip: somebody else gets the item"],
  ["F", "flag the item for the curator"],
  ["N", "write a note; Esc leaves it, the answer takes it along"],
  ["Z", "go back and change an answer; again for one further back"],
  ["H", "mark the words that passages share with instruction and query"],
  ["?", "this list"],
];

export default function (component) {
  return receiveIn(JudgingCard, component);
}

function wordsOf(text) {
  const found = text.toLowerCase().match(/[\p{L}\p{N}]+/gu) || [];
  return new Set(found.filter((word) => word.length > 2 && !STOP_WORDS.has(word)));
}

// An example of the training comes again in the next round; an item of the study never does.
function nameOf(id, round) {
  return round === undefined ? id : `${id}/${round}`;
}

class JudgingCard extends OutboxCard {
  constructor(parent) {
    super(parent, { mirror: "inf-card", sentAtOnce: 200 });
    this.highlight = false;
  }

  forget() {
    super.forget();
    this.queue = [];
    this.changing = false;
    this.asking = null; // the event of an example whose feedback is on its way
    this.feedback = null; // what was right, until it is read
  }

  receive(component) {
    this.takeAnswers(component);
    this.queue = this.data.items.filter((item) => !this.decided.has(nameOf(item.id, item.round)));
    const told = this.data.feedback.find((one) => one.event === this.asking);
    if (this.asking && !this.outbox.has(this.asking)) this.asking = null;
    const stillMine = this.current && this.queue.some((item) => item.id === this.current.id);
    if (told) this.showFeedback(told);
    else if (this.asking || this.feedback || this.changing || stillMine) this.drawAround();
    else this.show(this.queue[0] || null);
    if (this.outbox.size) this.send();
  }

  wasDecided(entry) {
    if (entry.study === this.data.study) this.decided.add(nameOf(entry.item, entry.round));
  }

  alongside() {
    return {};
  }

  // ---- deciding

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
    this.post(event, entry);
    this.decided.add(nameOf(item.id, item.round));
    if (isExample) {
      this.asking = event;
      this.drawBadge();
      this.say(`You chose ${this.inWords(entry)}.`);
      afterPaint(() => this.outbox.size && this.send());
      return;
    }
    this.remember({ item, entry }, (past) => past.item.id === item.id);
    this.changing = false;
    this.queue = this.queue.filter((other) => other.id !== item.id);
    this.show(this.queue[0] || null);
    this.say(kind === "skip" ? "Skipped." : `Answered: ${this.inWords(entry)}.`);
    afterPaint(() => this.outbox.size && this.send()); // what sending costs must not delay the next item
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
    const hadFocus = this.hasFocus();
    this.current = item;
    this.flagged = past ? past.flagged : false;
    this.note = past ? past.note : "";
    this.clear();
    this.root.dataset.item = item ? String(item.id) : "";
    this.bar = make("div", "bar");
    this.bar.appendChild(make("span"));
    this.drawHead(this.bar);
    if (item) this.drawItem(item, past);
    else this.drawNothing();
    this.drawAround();
    if (hadFocus) this.root.querySelector(".asked")?.focus({ preventScroll: true });
    if (item) this.startDwell(item);
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
    const wasNone = past && past.kind === "pick" && past.position === null;
    if (wasNone || this.feedback?.chosen === null) none.classList.add("chosen");
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
    this.help = listOfKeys(KEYS);
    this.root.append(tools, this.noteRow, this.help, this.drawVoice());
  }

  drawNothing() {
    this.root.appendChild(make("div", "nothing", this.whyNothing()));
    const tools = make("div", "tools");
    if (this.history.length) {
      tools.appendChild(this.button("Undo", "tool", () => this.undo(), "Z"));
    }
    this.help = make("div");
    this.root.append(tools, this.drawVoice());
  }

  whyNothing() {
    if (this.data.message) return this.data.message;
    return this.data.finished
      ? "Thank you: nothing is left for you in this study."
      : "The next item is on its way …";
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
    this.drawProblems();
    const nothing = this.root.querySelector(".nothing");
    if (nothing) nothing.textContent = this.whyNothing();
    this.drawBadge();
  }

  problem(event, entry) {
    return make("div", "problem", `An answer was not taken: ${entry.why} `);
  }
}
