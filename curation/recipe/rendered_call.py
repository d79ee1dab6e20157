"""The messages of a journaled call: its prompt filled in again from the stored inputs.

The journal keeps long inputs by their sha256: they are passages of the store, or texts of a group
that the call served.
"""

from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from curation.recipe.prompt import Prompt, messages
from db.corpus.datasets import text_sha256
from db.errors import NotFound
from db.tables import Call, GroupCall, Passage, SlotText
from db.tables import Prompt as PromptRow


def rendered_messages(session: Session, call_id: int) -> list[dict[str, str]]:
    """The messages of a call: role and content. Raises NotFound."""
    call = session.get(Call, call_id)
    if call is None:
        raise NotFound(
            f"no call {call_id}", "`groups show N` lists the calls of a group", code="call_unknown"
        )
    prompt = session.get(PromptRow, call.prompt_sha256)
    if prompt is None:
        raise NotFound(
            f"the prompt of call {call_id} is not in the store",
            "start a new run: it stores its prompts",
            code="prompt_not_stored",
        )
    given: dict[str, Any] = call.request["inputs"]
    wanted = {
        one["sha256"]
        for value in given.values()
        for one in (value if isinstance(value, list) else [value])
        if isinstance(one, dict)
    }
    known = _texts(session, call_id, wanted)

    def whole(one: Any) -> str:
        if isinstance(one, dict):
            return known.get(one["sha256"], "[a text that is no longer stored]")
        return str(one)

    inputs = {
        name: [whole(one) for one in value] if isinstance(value, list) else whole(value)
        for name, value in given.items()
    }
    return messages(Prompt(prompt.name, prompt.text), inputs)


def _texts(session: Session, call_id: int, wanted: set[str]) -> dict[str, str]:
    """Texts by sha256: passages first, then instructions and queries of the call's groups."""
    rows = session.execute(select(Passage.sha256, Passage.text).where(Passage.sha256.in_(wanted)))
    found = {row.sha256: row.text for row in rows}
    if wanted - set(found):
        served = select(GroupCall.group_id).where(GroupCall.call_id == call_id)
        texts = select(SlotText.text).where(SlotText.group_id.in_(served))
        found |= {text_sha256(text): text for text in session.scalars(texts) if text is not None}
    return found
