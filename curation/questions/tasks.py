"""Tasks of a study for other annotation tools, with the labelling config of each. Reading only.

A task is a card: its texts once, its passages in a new random order, and a control for each item:
`role-2` is the question `role` about the passage shown second. Tools with one question a task
(Prodigy, doccano) get a task for each item, the tasks of a card one after another.

`item` names the card's first item and `items` all of them by control (`query_ok=7 role-1=9`); both
come back in the tool's export, as `order_shown` does: a digest of each passage's text in the order
shown. Labels would tell whoever opens the task's source what a passage was made to be, ids of
passages would by their order; a text's digest says nothing that the text does not.
`curation.questions.judgment_import` reads all three.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from xml.sax.saxutils import quoteattr

from sqlalchemy import select
from sqlalchemy.orm import Session

from curation.judging.request import Tool
from db.assignment.shown_items import random_order
from db.corpus.texts import passage_texts
from db.question import NO, YES, Question, about_shown
from db.run.new_items import questions_of
from db.study.studies import get_study
from db.tables import Item, StudyItem
from db.values import AMBIGUOUS, NONE, SEVERAL

SHOWN_PARTS: Final = ("main", "gold")  # a qualification gives feedback, which only the card does
TENTHS: Final = tuple(f"{tenth / 10:g}" for tenth in range(11))
BATCH: Final = 500


@dataclass(frozen=True)
class Control:
    """An item of a card: its control, its question and the place of the passage it asks about."""

    control: str
    item_id: int
    question: Question
    about: int | str | None


@dataclass(frozen=True)
class Card:
    """What a task shows: texts, the passages in the order shown, and what is asked of them."""

    instruction: str
    query: str
    passages: tuple[str, ...]
    controls: tuple[Control, ...]

    def names(self, controls: Sequence[Control]) -> dict[str, Any]:
        """What brings the answers to these items back."""
        return {
            "item": controls[0].item_id,
            "items": " ".join(f"{one.control}={one.item_id}" for one in controls),
            "order_shown": ",".join(map(text_digest, self.passages)),
        }

    def texts(self, most: int) -> dict[str, str]:
        """The texts by field; of passages that this card lacks, an empty text."""
        passages = (*self.passages, *("",) * (most - len(self.passages)))
        shown = {f"passage_{number}": text for number, text in enumerate(passages, 1)}
        return {"instruction": self.instruction, "query": self.query, **shown}


def text_digest(text: str) -> str:
    """What stands for a passage in `order_shown`: the first 16 digits of its text's sha256."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def study_tasks(session: Session, study_id: int, tool: Tool) -> dict[str, str]:
    """The files of a tool by name: tasks and the labelling config. Raises NotFound."""
    cards = list(_cards(session, study_id))
    return TOOLS[tool](cards)


def _cards(session: Session, study_id: int) -> Iterator[Card]:
    order = get_study(session, study_id).settings.get("questions") or []
    query = (
        select(StudyItem.position, Item)
        .join(Item, Item.id == StudyItem.item_id)
        .where(StudyItem.study_id == study_id, StudyItem.part.in_(SHOWN_PARTS))
        .order_by(StudyItem.position, Item.group_id)
    )
    held: dict[tuple[int, int], list[Item]] = {}
    for position, item in session.execute(query):
        held.setdefault((position, item.group_id), []).append(item)
    cards = list(held.values())
    questions = questions_of(session, (item for card in cards for item in card))
    for start in range(0, len(cards), BATCH):
        batch = cards[start : start + BATCH]
        ids = {entry["passage_id"] for card in batch for entry in card[0].candidates}
        texts = passage_texts(session, ids)
        for card in batch:
            yield _card(card, questions, order, texts)


def _card(
    items: Sequence[Item],
    questions: Mapping[int | None, Question],
    order: Sequence[str],
    texts: Mapping[int, str],
) -> Card:
    labels = random_order(items[0])
    passages = {entry["label"]: texts[entry["passage_id"]] for entry in items[0].candidates}
    controls = []
    for item in items:
        question = questions[item.question_id]
        about = about_shown(item.scenario, labels) if item.question_id else None
        is_passage = isinstance(about, int)
        control = f"{question.name}-{about + 1}" if isinstance(about, int) else question.name
        place = (order.index(question.name) if order else 0, about if is_passage else -1)
        controls.append((place, Control(control, item.id, question, about)))
    controls.sort(key=lambda one: (one[0], one[1].control))
    shown = tuple(passages[label] for label in labels)
    return Card(items[0].instruction, items[0].query, shown, tuple(one for _, one in controls))


def answers_shown(question: Question, passages: int) -> dict[str, str]:
    """The answers that a tool offers: what it stores, and what it shows.

    A pick's are places in the order shown, a score's its tenths: no tool but Label Studio has a
    control for any number.
    """
    if question.kind == "pick":
        found = {str(number): f"Passage {number}" for number in range(1, passages + 1)}
        found |= {NONE: "None of them", SEVERAL: "Several fit"}
    elif question.kind == "score":
        found = dict.fromkeys(TENTHS, "")
    elif question.kind == "yes_no":
        found = {YES: "Yes", NO: "No"}
    else:
        found = {label: f"{label}: {meaning}" for label, meaning in question.labels.items()}
    return {key: text or key for key, text in found.items()} | {AMBIGUOUS: "Ambiguous"}


def _title(one: Control) -> str:
    text = one.question.text or "Which passage answers the query in the way the instruction asks?"
    return f"{text} (passage {one.about + 1})" if isinstance(one.about, int) else text


def _controls(cards: Sequence[Card]) -> list[Control]:
    """The controls of all cards: those of the card with the most passages hold the others'."""
    found: dict[str, Control] = {}
    for card in sorted(cards, key=lambda card: -len(card.passages)):
        for one in card.controls:
            found.setdefault(one.control, one)
    return list(found.values())


def _most(cards: Sequence[Card]) -> int:
    return max((len(card.passages) for card in cards), default=0)


def _label_studio(cards: Sequence[Card]) -> dict[str, str]:
    most = _most(cards)
    tasks = [{"data": card.names(card.controls) | card.texts(most)} for card in cards]
    lines = ["<View>"]

    def text(name: str, title: str) -> None:
        lines.append(f"  <Header value={quoteattr(title)}/>")
        lines.append(f'  <Text name="{name}" value="${name}"/>')

    def choices(one: Control, to: str) -> None:
        lines.append(f"  <Header value={quoteattr(_title(one))}/>")
        lines.append(
            f'  <Choices name="{one.control}" toName="{to}" choice="single" showInline="true">'
        )
        for answer, title in answers_shown(one.question, most).items():
            lines.append(f'    <Choice alias="{answer}" value={quoteattr(title)}/>')
        lines.append("  </Choices>")

    controls = _controls(cards)
    text("instruction", "Instruction")
    text("query", "Query")
    for number in range(1, most + 1):
        text(f"passage_{number}", f"Passage {number}")
        for one in controls:
            if one.about == number - 1:
                choices(one, f"passage_{number}")
    for one in controls:
        if not isinstance(one.about, int):
            choices(one, "query")
    lines.append("</View>")
    return {"tasks.json": _json(tasks), "config.xml": "\n".join(lines) + "\n"}


def _argilla(cards: Sequence[Card]) -> dict[str, str]:
    """Records and settings as `rg.Dataset.from_disk` and `rg.Settings.from_json` read them."""
    most = _most(cards)
    fewest = min((len(card.passages) for card in cards), default=0)
    records = []
    for card in cards:
        names = card.names(card.controls)
        texts = {name: text for name, text in card.texts(most).items() if text}
        records.append({"id": f"item-{names['item']}", "fields": texts, "metadata": names})
    passages = [f"passage_{number}" for number in range(1, most + 1)]
    fields = [
        {
            "name": name,
            "title": name.replace("_", " ").capitalize(),
            "required": name == "query" or name in passages[:fewest],
            "settings": {"type": "text", "use_markdown": False},
        }
        for name in ("query", "instruction", *passages)
    ]
    questions = [
        {
            "name": one.control,
            "title": _title(one),
            "description": None,
            "required": not isinstance(one.about, int) or one.about < fewest,
            "settings": {
                "type": "label_selection",
                "options": [
                    {"value": answer, "text": title, "description": None}
                    for answer, title in answers_shown(one.question, most).items()
                ],
                "visible_options": None,
            },
        }
        for one in _controls(cards)
    ]
    kinds = {"item": "integer", "items": "terms", "order_shown": "terms"}
    metadata = [
        {
            "name": name,
            "title": name,
            "visible_for_annotators": False,
            "settings": {"type": kind},
        }
        for name, kind in kinds.items()
    ]
    settings = {
        "guidelines": None,
        "allow_extra_metadata": True,
        "fields": fields,
        "questions": questions,
        "metadata": metadata,
        "vectors": [],
    }
    return {"records.json": _json(records), "settings.json": _json(settings)}


def _one_by_one(cards: Sequence[Card]) -> Iterator[tuple[str, dict[str, str], dict[str, Any]]]:
    """Of each item: what is asked with all texts, the answers, and what brings them back."""
    for card in cards:
        parts = [("Instruction", card.instruction), ("Query", card.query)]
        parts += [(f"Passage {number}", text) for number, text in enumerate(card.passages, 1)]
        texts = "\n\n".join(f"{title}: {text}" for title, text in parts if text)
        for one in card.controls:
            answers = answers_shown(one.question, len(card.passages))
            yield f"{_title(one)}\n\n{texts}", answers, card.names([one])


def _prodigy(cards: Sequence[Card]) -> dict[str, str]:
    tasks = [
        {
            "text": text,
            "options": [{"id": answer, "text": title} for answer, title in answers.items()],
            **names,
        }
        for text, answers, names in _one_by_one(cards)
    ]
    config = {"view_id": "choice", "choice_style": "single", "choice_auto_accept": True}
    return {"tasks.jsonl": json_lines(tasks), "prodigy.json": _json(config)}


def _doccano(cards: Sequence[Card]) -> dict[str, str]:
    tasks = [{"text": text, "label": [], **names} for text, _, names in _one_by_one(cards)]
    answers: dict[str, str] = {}
    for one in _controls(cards):
        answers |= answers_shown(one.question, _most(cards))
    labels = [{"text": answer} for answer in answers]
    return {"tasks.jsonl": json_lines(tasks), "label_config.json": _json(labels)}


TOOLS: Final[Mapping[Tool, Callable[[Sequence[Card]], dict[str, str]]]] = {
    "labelstudio": _label_studio,
    "argilla": _argilla,
    "prodigy": _prodigy,
    "doccano": _doccano,
}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1) + "\n"


def json_lines(rows: Iterable[Any]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
