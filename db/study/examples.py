"""Examples in a study's guidelines: a real item with an answer, right or wrong, and why.

An example is text of a version of the guidelines: judges confirm it, its difference is shown, a
model reads it with the rest, and a curator edits it there. As it tells the answer, only an item
that nobody judges any more is one: of the qualification, or of closed studies.
"""

from collections.abc import Iterator

from sqlalchemy import and_, or_, select
from sqlalchemy.orm import Session

from db.assignment.shown_items import shuffled_labels
from db.corpus.texts import passage_texts
from db.errors import BadInput, NotFound, Refused
from db.question import PICK, Question, about_shown
from db.run.new_items import question_of
from db.study.studies import current_guideline, get_study, write_guideline
from db.tables import Guideline, Item, Passage, Study, StudyItem

HEADING = "## Examples: "
PICK_TEXT = "Which passage is the most relevant?"


def add_example(
    session: Session,
    study_id: int,
    item_id: int,
    *,
    answer: str = "",
    is_right: bool = True,
    why: str = "",
    created_by: str = "",
) -> Guideline:
    """Add an item with an answer to the guidelines, as their next version. Does not commit.

    `answer`: a label, by default the right one where it is known. Raises NotFound, BadInput for
    what is no answer, Refused for an item that people judge.
    """
    study = get_study(session, study_id)
    session.refresh(study, with_for_update={"key_share": True})
    item = session.get(Item, item_id)
    if item is None:
        raise NotFound(
            f"there is no item {item_id}",
            f"`studies disagreements {study_id}` lists items",
            code="item_not_found",
        )
    _require_not_judged(session, study_id, item)
    question = question_of(session, item)
    labels = shuffled_labels(item, study_id)
    answer = answer or (_known(session, study_id, item) if is_right else "")
    if not answer:
        raise BadInput(
            f"the right answer of item {item_id} is not known"
            if is_right
            else "a wrong answer is written out",
            "give `answer=`",
            code="answer_missing",
        )
    question.check(answer, labels, f"item {item_id}")
    heading = f"{HEADING}{question.text or PICK_TEXT}"
    known = {*study.settings.get("examples", ()), item.group_id}
    study.settings = {**study.settings, "examples": sorted(known)}
    example = _example(session, item, question, labels, answer, is_right, why)
    body = current_guideline(session, study_id).body
    lines = body.rstrip("\n").splitlines()
    place = lines.index(heading) + 1 if heading in lines else len(lines)
    new = ["", *example] if heading in lines else ["", heading, "", *example]
    text = "\n".join([*lines[:place], *new, *lines[place:]]) + "\n"
    return write_guideline(session, study_id, text, created_by=created_by)


def examples_in(guidelines: str) -> str:
    """The examples that guidelines contain, of all questions."""
    found, is_example = list[str](), False
    for line in guidelines.splitlines():
        if line.startswith(("# ", "## ")):
            is_example = line.startswith(HEADING)
        if is_example:
            found.append(line)
    return "\n".join(found)


def example_groups(session: Session, dataset_id: int) -> set[int]:
    """The groups of which guidelines of the dataset's studies show an item with its answer."""
    settings = session.scalars(select(Study.settings).where(Study.dataset_id == dataset_id))
    return {group_id for each in settings for group_id in each.get("examples", ())}


def example_texts(session: Session) -> dict[tuple[str, str], set[str]]:
    """The texts of all examples: by instruction and query the sha256 of each passage."""
    settings = session.scalars(select(Study.settings))
    groups = {group_id for each in settings for group_id in each.get("examples", ())}
    items = session.scalars(select(Item).where(Item.group_id.in_(groups))).all()
    found: dict[tuple[str, str], set[str]] = {}
    for item in items:
        found.setdefault((item.instruction, item.query), set()).update(_passages(session, item))
    return found


def _passages(session: Session, item: Item) -> Iterator[str]:
    ids = [entry["passage_id"] for entry in item.candidates]
    yield from session.scalars(select(Passage.sha256).where(Passage.id.in_(ids)))


def _example(
    session: Session,
    item: Item,
    question: Question,
    labels: list[str],
    answer: str,
    is_right: bool,
    why: str,
) -> list[str]:
    """The example as Markdown: texts are indented, so that nothing in them is markup."""
    about = about_shown(item.scenario, labels) if question is not PICK else None
    ids = {entry["label"]: entry["passage_id"] for entry in item.candidates}
    texts = passage_texts(session, ids.values())
    passages = [texts[ids[label]] for label in labels]
    shown = {"Instruction": item.instruction, "Query": item.query}
    if isinstance(about, int):
        shown["Passage"] = passages[about]
    elif about is None:
        shown |= {f"Passage {number}": text for number, text in enumerate(passages, 1)}
    if answer in labels:
        answer = f"passage {labels.index(answer) + 1}"
    elif meaning := question.labels.get(answer):
        answer = f"{answer} ({meaning})"
    lines = [f"**{'Right' if is_right else 'Wrong'}: {answer}.** {why}".rstrip()]
    for name, text in shown.items():
        if text:
            lines += ["", f"{name}:", "", *(f"    {line}" for line in text.splitlines())]
    return lines


def _known(session: Session, study_id: int, item: Item) -> str:
    """The right answer of an item, as its study or its group has it; "" where none is known."""
    gold = select(StudyItem.gold_choice).where(
        StudyItem.study_id == study_id, StudyItem.item_id == item.id
    )
    return session.scalar(gold) or item.expected or ""


def _require_not_judged(session: Session, study_id: int, item: Item) -> None:
    """Raise Refused where an open study has items of the group, or of the same texts: in this study
    the same instruction and query, in another one (of a file, say) with a passage in common."""
    same_words = and_(Item.instruction == item.instruction, Item.query == item.query)
    places = session.execute(
        select(StudyItem.study_id, Item)
        .join(Item, Item.id == StudyItem.item_id)
        .join(Study, Study.id == StudyItem.study_id)
        .where(
            StudyItem.part != "training",
            Study.status != "closed",
            or_(Item.group_id == item.group_id, same_words),
        )
        .order_by(StudyItem.study_id)
    )
    own = set(_passages(session, item))
    for place, other in places:
        if (
            other.group_id == item.group_id
            or place == study_id
            or not own.isdisjoint(_passages(session, other))
        ):
            raise Refused(
                f"people judge the texts of item {item.id} in study {place}: as an example it "
                "would show them the answer",
                "choose an item of the qualification, or of a closed study",
                code="example_is_judged",
            )
