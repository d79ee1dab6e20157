// The judging card: shows items leased in advance and takes decisions by key or mouse. Delivery to
// the server is in outbox_card.js, which precedes this file in the same module.

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
  ["S", "skip; another judge gets the item"],
  ["F", "flag the item for the curator"],
  ["N", "write a note, sent with the answer; Esc leaves the note"],
  ["Z", "go back one item and change the answer; repeat to go further back"],
  ["H", "highlight words shared with instruction and query"],
  ["?", "show or hide this list"],
];

export default function (component) {
  return receiveIn(JudgingCard, component);
}

function wordsOf(text) {
  const found = text.toLowerCase().match(/[\p{L}\p{N}]+/gu) || [];
  return new Set(found.filter((word) => word.length > 2 && !STOP_WORDS.has(word)));
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
    this.awaiting = null; // the event of an example whose feedback has not arrived
    this.feedback = null; // the correct answer, until the judge continues
  }

  receive(component) {
    this.takeAnswers(component);
    this.queue = this.data.items.filter((item) => !this.decided.has(item.token));
    const arrived = this.data.feedback.find((one) => one.event === this.awaiting);
    if (this.awaiting && !this.outbox.has(this.awaiting)) this.awaiting = null;
    const stillMine = this.current && this.queue.some((item) => item.token === this.current.token);
    if (arrived) this.showFeedback(arrived);
    else if (this.awaiting || this.feedback || this.changing || stillMine) this.drawAround();
    else this.show(this.queue[0] || null);
    if (this.outbox.size) this.send();
  }

  wasDecided(entry) {
    if (entry.study === this.data.study) this.decided.add(entry.token);
  }

  alongside() {
    return {};
  }

  // ---- deciding

  decide(kind, position) {
    const item = this.current;
    if (!item || this.data.message || this.awaiting || this.feedback) return;
    if (this.isTooSoon()) {
      this.say("Too fast: read the item first.");
      return;
    }
    const event = newEventId();
    const isExample = item.round !== undefined;
    const entry = {
      event,
      kind: isExample ? "example" : kind,
      round: item.round,
      study: this.data.study,
      token: item.token,
      position,
      shown: this.paintedDate.toISOString(),
      decided: new Date().toISOString(),
      note: this.note,
      flagged: this.flagged,
      change: this.changing,
    };
    this.post(event, entry);
    this.decided.add(item.token);
    if (isExample) {
      this.awaiting = event;
      this.drawBadge();
      this.say(`You chose ${this.answerText(entry)}.`);
      afterPaint(() => this.outbox.size && this.send());
      return;
    }
    this.remember({ item, entry }, (past) => past.item.token === item.token);
    this.changing = false;
    this.queue = this.queue.filter((other) => other.token !== item.token);
    this.show(this.queue[0] || null);
    this.say(kind === "skip" ? "Skipped." : `Answered: ${this.answerText(entry)}.`);
    afterPaint(() => this.outbox.size && this.send()); // sending must not delay showing the next item
  }

  answerText(entry) {
    if (entry.kind === "skip") return "skipped";
    return entry.position === null ? "none of them" : `passage ${entry.position + 1}`;
  }

  undo() {
    const at = this.changing
      ? this.history.findIndex((past) => past.item.token === this.current.token) - 1
      : this.history.length - 1;
    if (at < 0) {
      this.say("There is no earlier answer.");
      return;
    }
    this.changing = true;
    this.show(this.history[at].item, this.history[at].entry);
  }

  advance() {
    if (!this.changing && !this.feedback) return;
    this.changing = false;
    this.feedback = null;
    this.show(this.queue[0] || null);
  }

  showFeedback(feedback) {
    this.feedback = feedback;
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
      Enter: this.feedback ? () => this.advance() : null,
      0: () => this.decide("pick", null),
      s: () => this.decide("skip", null),
      f: () => this.toggleFlag(),
      n: () => this.openNote(),
      z: () => this.undo(),
      h: () => this.toggleHighlight(),
      "?": () => this.toggleHelp(),
      Escape: this.changing || this.feedback ? () => this.advance() : null,
    }[key.length === 1 ? key.toLowerCase() : key];
  }

  toggleFlag() {
    if (!this.current) return;
    this.flagged = !this.flagged;
    this.flagButton.setAttribute("aria-pressed", String(this.flagged));
    this.say(this.flagged ? "Flagged for the curator." : "Flag removed.");
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

  // ---- rendering

  show(item, past) {
    const hadFocus = this.hasFocus();
    this.current = item;
    this.flagged = past ? past.flagged : false;
    this.note = past ? past.note : "";
    this.clear();
    this.root.dataset.item = item ? item.token : "";
    this.bar = make("div", "bar");
    this.bar.appendChild(make("span"));
    this.drawHead(this.bar);
    if (item) this.drawItem(item, past);
    else this.drawNothing();
    this.drawAround();
    if (hadFocus) this.root.querySelector(".question")?.focus({ preventScroll: true });
    if (item) this.startDwell(item);
  }

  drawItem(item, past) {
    if (past) {
      const banner = make("div", "banner", `You answered: ${this.answerText(past)}. Choose again, or `);
      banner.appendChild(this.button("continue (Esc)", "link", () => this.advance()));
      this.root.appendChild(banner);
    }
    if (this.feedback) this.drawFeedback();
    const question = make("section", "question");
    question.tabIndex = -1;
    question.setAttribute("aria-label", "Item");
    for (const [label, text] of [["Instruction", item.instruction], ["Query", item.query]]) {
      question.appendChild(make("h3", "label", label));
      const body = make("p", "text", text);
      body.dir = "auto";
      question.appendChild(body);
    }
    this.root.appendChild(question);
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
    const { chosen, right, explanation, then } = this.feedback;
    const label = (at) => (at === null ? "none of them" : `passage ${at + 1}`);
    const isRight = chosen === right;
    const banner = make("div", `banner ${isRight ? "good" : "bad"}`);
    banner.setAttribute("role", "status");
    const verdict = isRight
      ? `Correct: ${label(right)}.`
      : `You chose ${label(chosen)}. The correct answer is ${label(right)}.`;
    banner.appendChild(make("strong", "", verdict));
    if (explanation) banner.appendChild(make("p", "why", explanation));
    if (then) banner.appendChild(make("p", "then", then));
    banner.appendChild(this.button("Continue", "go", () => this.advance(), "Enter"));
    this.root.appendChild(banner);
  }

  fillPassages() {
    if (!this.current) return;
    const context = wordsOf(`${this.current.instruction} ${this.current.query}`);
    this.bodies.forEach((body, position) => {
      const text = this.current.candidates[position];
      if (!this.highlight) {
        body.textContent = text;
        return;
      }
      const pieces = text.split(/([\p{L}\p{N}]+)/u).map((piece, number) => {
        const isShared = number % 2 === 1 && context.has(piece.toLowerCase());
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
      ? "Thank you. No items are left for you in this study."
      : "Loading the next item …";
  }

  drawAround() {
    const unsent = [...this.outbox.values()].filter(
      (entry) => entry.study === this.data.study && entry.kind === "pick" && !entry.change,
    ).length;
    const done = this.data.done + unsent;
    const left = Math.max(0, this.data.left - unsent);
    const pace = this.data.pace === null ? "" : ` · ${Math.round(this.data.pace)} s per item`;
    const qualification = this.data.qualification;
    this.progress.textContent = qualification
      ? `Qualification, round ${qualification.round + 1} · ${qualification.answered} of ` +
        `${qualification.total} examples · ` +
        `${Math.round(100 * qualification.pass_mark)} % correct required`
      : `${done} answered · ${left} left for you${pace}`;
    const share = qualification ? qualification.answered / qualification.total : done / (done + left || 1);
    this.bar.firstChild.style.width = `${done + left || qualification ? 100 * share : 100}%`;
    this.drawProblems();
    const nothing = this.root.querySelector(".nothing");
    if (nothing) nothing.textContent = this.whyNothing();
    this.drawBadge();
  }

  problem(event, entry) {
    return make("div", "problem", `An answer was not stored: ${entry.why} `);
  }
}
