// What every card in the browser begins with; its own file comes after this one in the same module
// (see card_files.py).
//
// What would surprise: Streamlit calls the default function at every rerun and may call a stale
// cleanup while the card is still there, so a card lives in a WeakMap by its parent element and
// goes only when that has left the page.

const CARDS = new WeakMap();

function receiveIn(CardClass, component) {
  const parent = component.parentElement;
  let card = CARDS.get(parent);
  if (!card) {
    card = new CardClass(parent);
    CARDS.set(parent, card);
  }
  card.receive(component);
  (parent.host ?? parent).dataset.drawn = ""; // style.css keeps a card's place until then
  return () => setTimeout(() => card.leaveIfGone(), 0);
}

function make(tag, className, text) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
}
