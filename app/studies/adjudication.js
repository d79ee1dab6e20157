// The judging card as an adjudicator has it: disputed items, blind, with how many people gave each
// answer. It follows judge/card.js in the same module, whose keys, outbox, undo and texts hold here.
//
// A reveal is an entry of the outbox, too: it is recorded, however often the connection breaks.

class AdjudicationCard extends JudgingCard {
  forget() {
    super.forget();
    this.aside = []; // tokens of items that are decided later; of this tab alone
  }

  receive(component) {
    super.receive(component);
    for (const item of [...(this.data?.revealed || []), ...this.queue].filter((one) => one.revealed)) {
      this.takeReveal(withCard(item));
    }
  }

  takeReveal(item) {
    const past = this.history.find((one) => one.item.token === item.token);
    if (past) past.item = item;
    if (this.current?.token !== item.token || this.current.revealed) return;
    this.show(item, this.changing ? past?.entry : undefined);
    this.say(this.t("card.is_revealed"));
  }

  alongside() {
    return { ...super.alongside(), aside: this.aside.slice(-500) };
  }

  entryOf(item, ...rest) {
    const entry = super.entryOf(item, ...rest);
    return { ...entry, change: entry.change || item.decided };
  }

  acts() {
    const { flag, message, ...acts } = super.acts();
    return { ...acts, skip: () => this.setAside(), reveal: () => this.reveal() };
  }

  keyText(action) {
    return this.t(action === "skip" ? "keys.later" : `keys.${action}`);
  }

  ownTools(tool) {
    const reveal = tool("reveal", "card.reveal");
    reveal.title = this.t("card.reveal_help");
    reveal.disabled = Boolean(this.current.revealed);
    return [tool("skip", "card.later"), tool("note", "card.note"), tool("undo", "card.undo"), reveal];
  }

  setAside() {
    const item = this.current;
    if (!item) return;
    if (this.changing) return this.advance();
    this.aside.push(item.token);
    this.decided.add(item.token);
    this.queue = this.queue.filter((one) => one.token !== item.token);
    this.show(this.nextAfter(item));
    this.say(this.t("card.set_aside"));
    this.send();
  }

  reveal() {
    const item = this.current;
    if (!item || item.revealed) return;
    const event = newEventId();
    const { study } = this.data;
    this.post(event, { event, kind: "reveal", study, token: item.token, decided: new Date().toISOString() });
    this.drawBadge();
    this.say(this.t("card.revealing"));
    this.send();
  }

  // How many people chose this; after a reveal, who did.
  besideAnswer(item, answer) {
    const place = item.options.indexOf(answer);
    if (place < 0) return [];
    const names = item.revealed?.judges[place] || [];
    const count = item.votes[place];
    if (!names.length && !count) return [];
    return [make("span", "votes", names.length ? names.join(", ") : this.t("card.votes", { count }))];
  }

  drawPassage(item, position, past) {
    const [row, body] = super.drawPassage(item, position, past);
    if (!this.isPick()) row.querySelector(".pick").disabled ||= !this.isAnswerable(item, position);
    const role = item.revealed?.roles[position];
    if (role) row.appendChild(make("span", "votes role", role));
    return [row, body];
  }

  isAnswerable(item, position) {
    return this.cardItems(item).some((one) => one.about === position);
  }

  drawBelow(item) {
    const below = make("section", "below");
    if (item.decided && !this.changing) below.appendChild(make("p", "why", this.t("card.is_decided")));
    if (item.revealed?.decision) {
      const { decided_by: name, decision: answer } = item.revealed;
      below.appendChild(make("p", "why", this.t("card.decision_by", { name, answer })));
    }
    for (const { judge, kind, reason, note } of item.remarks) {
      const what = [judge, this.t(`card.remark_${kind}`), reason && this.t(`reason.${reason}`)];
      below.appendChild(this.line(what.filter(Boolean).join(" · "), note));
    }
    for (const { messages, places } of item.threads) {
      const here = places.map((place, number) => `${number + 1} → ${place + 1}`).join(", ");
      below.appendChild(make("p", "label", this.t("card.thread_places", { here })));
      for (const [who, body] of messages) below.appendChild(this.line(who, body));
    }
    if (below.childElementCount) this.root.appendChild(below);
  }

  line(label, body) {
    const line = make("p", "remark");
    const text = make("span", "", body);
    text.dir = "auto";
    line.append(make("strong", "", body ? `${label}: ` : label), text);
    return line;
  }

  drawProgress() {
    const { done, left } = this.counts();
    this.progress.textContent = this.t("card.decided", { done, left });
    this.bar.firstChild.style.width = `${done + left ? (100 * done) / (done + left) : 100}%`;
  }

  whyNothing() {
    if (this.data.message) return this.data.message;
    if (!this.data.finished) return this.t("card.loading");
    return this.t(this.aside.length ? "card.only_aside" : "card.nothing_to_decide");
  }
}
