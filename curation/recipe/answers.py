"""Read the answer of a model: the one place where text becomes a text of a group or a choice. Pure.

In this order: thinking is removed (`reasoning`); one JSON object is read by the task's schema, or
the label that the prompt requires; unambiguous answers are accepted in any formatting; leftovers of
the chat around it are refused (`leftovers`). An uncertain answer is dropped with its reason: a
dropped group costs a cent, a wrong text is learnt.
"""

import json
import re
import textwrap
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from curation.recipe.characters import cleaned
from curation.recipe.leftovers import find_leftover, find_refusal
from curation.recipe.prompt import Prompt
from curation.recipe.reasoning import UnclosedReasoning, strip_reasoning
from curation.recipe.tasks import GIVES, JUDGED, Gives, Task
from db.errors import BadInput
from db.question import NO, YES, Question, score
from db.shape import GroupText, ListText
from db.values import AMBIGUOUS, NONE

NO_CHARACTER = "\ufffd"
MAX_CHARACTERS = 200_000  # of an answer without its thinking: no text of ours is so long
_UNSTORABLE = re.compile("[\\x00\\ud800-\\udfff]")
_FENCED = re.compile(r"\s*(```|~~~)[\w+#.-]*(?:[ \t]*\n|[ \t]+|(?=[{\[]))(.*?)\s*\1\s*", re.DOTALL)
# keys beside the wanted one that only hold reasons
_COMMENTS = frozenset(
    "reasoning thinking thought thoughts explanation rationale analysis notes justification".split()  # noqa: SIM905
)
_YAML_BLOCK = re.compile(r"([|>])[+-]?\d?[ \t]*\n")
_KEY_PREFIX = re.compile(r"^(?:new|your|final|the)_")
_LABEL_PREFIX = r"(?:(?:my|the|your|new|final|revised)\s+)*"
_NUMBER = r"(?<![-−.\d])\d+(?![.,]?\d)"
_VALUE = rf"(?:{_NUMBER}|none\b|ambiguous\b)"
_DRESS = r"[\s*_\"'“\[(<#{`]*+"  # possessive: 40,000 brackets take no time to read
_BEFORE_VALUE = (
    rf"[:\s*_\"'“\[(<#{{`]*+(?:(?:passage|document|number|candidate|option|no\.)\s*)?{_DRESS}"
)
_CHOICE = re.compile(
    rf"\b(?:choice|answer|selection)\b[\s*_\"'\])]*(?:is\b|[:=])"
    rf"{_BEFORE_VALUE}({_VALUE})(?!\s*[-–]\s*\d)",
    re.IGNORECASE,
)
_CHOICE_BEGINS = re.compile(r"\b(?:choice|selection)\b[\s*_\"'\])]*[:=]", re.IGNORECASE)
_ALONE = re.compile(
    rf"{_BEFORE_VALUE}({_VALUE})[\s*_\"'”\])>.}}`]*(?:of them|of the passages)?[\s*_.]*",
    re.IGNORECASE,
)
_BOXED = re.compile(rf"\\boxed\{{\s*(?:\\text\{{)?\s*({_VALUE})\s*\}}", re.IGNORECASE)
_MORE = re.compile(
    r"[\s*_\"'\])>]*(?:,|;|/|&|\+|\bor\b|\band\b|\bvs\b|\bto\b|[-–])[\s*_\"'\[(<]*"
    r"(?:(?:passage|document|number)\s*)?[\s*_\"'\[(<]*(?:\d|none\b|ambiguous\b)",
    re.IGNORECASE,
)
# after the number, in its line: the answer takes its choice back, or names another one
_DOUBT = re.compile(
    r"[^\n]*\?|\W*(?:is|was|seems)\s+(?:wrong|not|incorrect|false)\b"
    r"|[^\n]*\b(?:also (?:fits?|works?|answers?|meets|satisf\w+|possible|correct|relevant)"
    r"|or (?:maybe|perhaps|possibly|another)|not sure|cannot decide)\b",
    re.IGNORECASE,
)
# anywhere after the number: another number behind a word that takes the choice back
_TAKEN_BACK = re.compile(
    r"\b(?:wait|actually|though|rather|instead|correction|on reflection|should be)\b"
    rf"\D{{0,60}}?({_NUMBER})",
    re.IGNORECASE,
)
MAX_DIGITS = 9  # of a candidate's number; `int` refuses thousands of them


class Unparsable(Exception):
    """An answer without a usable text; `reason` is the drop reason."""

    def __init__(self, reason: str, detail: str) -> None:
        self.reason = reason
        super().__init__(detail)


def storable(text: str) -> str:
    """An answer that every store accepts: NULs and lone surrogates become U+FFFD."""
    return _UNSTORABLE.sub(NO_CHARACTER, text)


def parse(
    task: Task,
    answer: str,
    *,
    gives: Gives,
    candidates: int = 0,
    prompt: Prompt | None = None,
    given: Mapping[str, str] | None = None,
    question: Question | None = None,
) -> str:
    """The text an answer gives, or the choice of a validator ("1" … , "none" or "ambiguous").

    With a `question`, the answer to it in its stored form (`db.question`).

    `prompt` and `given` (the inputs that are texts) distinguish echoes and leftovers from text.
    `gives`: the label of the answer.
    Instructions and queries are cut at their first newline (the paper's B.1). Raises Unparsable.
    """
    plain = _plain(task, answer)
    if gives == "Choice":
        return _choice(task, plain, candidates)
    if question is not None:
        return _verdict(task, gives, plain, question)
    return _text(task, gives, plain, prompt, given)


def parse_several(
    task: Task,
    answer: str,
    texts: Sequence[GroupText],
    *,
    prompt: Prompt | None = None,
    given: Mapping[str, str] | None = None,
) -> dict[str, str | Unparsable]:
    """The texts of one JSON object by name (`N`, `N[1]`), each usable or with the reason.

    Its keys are the texts' columns; of a list it has as many as were written, of which the first
    `count` are read. Raises Unparsable where there is no such object, or it lacks a text that is
    no list.
    """
    plain = _plain(task, answer)
    wanted = {text.column: text for text in texts}
    found = [one for one in _objects(task, plain) if wanted.keys() & set(map(_key, one))]
    if not found:
        if refusal := find_refusal(plain):
            raise Unparsable(refusal.reason, f"{task}: {refusal.what}")
        raise Unparsable("unparsable", f"{task}: no JSON object with {', '.join(wanted)}")
    if any(one != found[0] for one in found):
        raise Unparsable("unparsable", f"{task}: several JSON objects that differ")
    values = {_key(name): value for name, value in found[0].items()}
    if unknown := [name for name in values if name not in wanted and name not in _COMMENTS]:
        raise Unparsable("unparsable", f"{task}: the JSON has an unknown key {unknown[0]!r}")
    read: dict[str, str | Unparsable] = {}
    for column, text in wanted.items():
        value = values.get(column)
        names = text.names
        listed = value if isinstance(value, list) and len(names) > 1 else [value]
        if isinstance(text, ListText):
            listed = [one for one in listed if one not in (None, "")]
        for name, one in zip(names, listed, strict=False):
            try:
                if not isinstance(one, str):
                    what = f"{column} is {one!r:.80}, not a text"
                    raise Unparsable("unparsable", f"{task}: {what}")
                read[name] = _usable(task, GIVES[text.field], one, "", prompt, given)
            except Unparsable as error:
                read[name] = error
    return read


def _plain(task: Task, answer: str) -> str:
    """An answer without its thinking."""
    try:
        plain = strip_reasoning(answer).strip()
    except UnclosedReasoning as error:
        raise Unparsable("unparsable", f"{task}: {error}") from error
    if not plain:
        what = "the answer is empty" if not answer.strip() else "nothing but thinking came"
        raise Unparsable("empty", f"{task}: {what}")
    if len(plain) > MAX_CHARACTERS:
        raise Unparsable("too_long", f"{task}: the answer has {len(plain):,} characters")
    return plain


def _text(
    task: Task, gives: Gives, plain: str, prompt: Prompt | None, given: Mapping[str, str] | None
) -> str:
    value = _from_json(task, gives, plain)
    if value is None:
        raw = _one_of_labels(task, gives, plain)
        rest = plain[plain.rfind(raw) + len(raw) :] if raw in plain else ""
    else:
        raw, rest = str(value), plain[plain.rfind("}") + 1 :]
    return _usable(task, gives, raw, rest, prompt, given)


def _usable(
    task: Task,
    gives: Gives,
    raw: str,
    rest: str,
    prompt: Prompt | None,
    given: Mapping[str, str] | None,
) -> str:
    """A text without its dress; `rest` is what follows it in the answer. Raises Unparsable."""
    text = cleaned(raw, "\n".join((given or {}).values())).strip()
    text = _unquoted(_without_label(gives, text))
    if gives == "Passage":
        text = _unfenced(text)
    else:
        text, _, more = text.strip().partition("\n")
        text, rest = _unquoted(text.strip()), f"{more}\n{rest}"
    if NO_CHARACTER in text:
        raise Unparsable("unparsable", f"{task}: the answer holds a non-character")
    if not text:
        raise Unparsable("empty", f"{task}: the {gives.lower()} is empty")
    leftover = find_leftover(gives, text, rest=rest, prompt=prompt, given=given)
    if leftover is not None:
        raise Unparsable(leftover.reason, f"{task}: the answer holds {leftover.what}")
    return text


# ---- JSON


def _from_json(task: Task, gives: Gives, plain: str) -> Any | None:
    """The value under the task's key in the one JSON object of an answer.

    None where the answer holds no such object and does not begin like one. A value that is no text
    (or, for a choice, no number), an unknown key or a second object that differs is Unparsable.
    """
    begins = _unfenced(plain).lstrip().startswith(("{", "[{"))
    found: list[Any] = []
    for one in _objects(task, plain):
        key = next((key for key in _wanted(gives) if key in map(_key, one)), None)
        if key is None:
            continue
        unknown = [name for name in one if _key(name) not in (key, *_COMMENTS)]
        if unknown:
            raise Unparsable("unparsable", f"{task}: the JSON has an unknown key {unknown[0]!r}")
        # `new_instruction` and `instruction` are both the wanted one
        found += [value for name, value in one.items() if _key(name) == key]
    if not found:
        if begins:
            raise Unparsable(
                "unparsable", f"{task}: the JSON is broken or has no {gives.lower()!r}"
            )
        return None
    if any(one != found[0] for one in found):
        raise Unparsable("unparsable", f"{task}: several JSON values that differ")
    value = found[0]
    if gives not in JUDGED:
        if not isinstance(value, str):
            raise Unparsable("unparsable", f"{task}: {gives.lower()} is {value!r:.80}, not a text")
        outside = {one for one in _labels(gives, plain) if one and not one.startswith(("{", "`"))}
        inside = value.strip()
        if not begins and any(one not in inside and inside not in one for one in outside):
            raise Unparsable("unparsable", f"{task}: a label and a JSON object that differ")
    return value


def _wanted(gives: Gives) -> tuple[str, ...]:
    return (gives.lower(), "answer") if gives in JUDGED else (gives.lower(),)


def _key(name: str) -> str:
    return _KEY_PREFIX.sub("", name.strip().lower().replace(" ", "_").replace("-", "_"))


def _objects(task: Task, text: str) -> Iterator[dict[str, Any]]:
    """The JSON objects at the top level of a text, in order."""
    decoder = json.JSONDecoder(strict=False, object_pairs_hook=_unique)  # raw line breaks are read
    place = text.find("{")
    while place >= 0:
        try:
            found, end = decoder.raw_decode(text, place)
        except _TwiceError as error:
            raise Unparsable("unparsable", f"{task}: {error}") from error
        except (ValueError, RecursionError):
            end = place + 1
        else:
            if isinstance(found, dict):
                yield found
        place = text.find("{", end)


class _TwiceError(Exception):
    """A key occurs twice in an object, with different values."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found and found[key] != value:
            raise _TwiceError(f"the JSON has {key!r} twice")
        found[key] = value
    return found


# ---- labels


def _labels(gives: Gives, text: str) -> list[str]:
    """The text after each label of the task, up to the next one; a line but for passages."""
    starts = list(_label_pattern(gives).finditer(text))
    found = []
    for number, one in enumerate(starts):
        end = starts[number + 1].start() if number + 1 < len(starts) else len(text)
        part = _from_yaml(text[one.end() : end].strip())
        if gives != "Passage":
            part = part.split("\n", 1)[0].strip()
        if one[1] and one[1] not in text[one.end(1) : one.end()]:  # label and text in one bold
            part = part.removesuffix(one[1]).rstrip()
        found.append(part)
    return found


def _from_yaml(text: str) -> str:
    """The text of a YAML block (`|` keeps its lines, `>` folds them), any other as it is."""
    begins = _YAML_BLOCK.match(text)
    block = text[begins.end() :] if begins else ""
    if begins is None or any(line.strip() and line[0] not in " \t" for line in block.split("\n")):
        return text
    lines = textwrap.dedent(block).strip("\n")
    return re.sub(r"(?<=\S)\n(?=\S)", " ", lines) if begins[1] == ">" else lines


def _label_pattern(gives: Gives) -> re.Pattern[str]:
    """A label at the beginning of a line, bold or not; the bold mark is group 1."""
    return re.compile(
        rf"^[^\w<{{*\n]*(\*{{1,3}}|__)?{_LABEL_PREFIX}{gives}[^\w\n]*?:(?(1)[*_]{{0,3}})[ \t]*",
        re.IGNORECASE | re.MULTILINE,
    )


def _one_of_labels(task: Task, gives: Gives, plain: str) -> str:
    """The text after the label; several different ones are Unparsable."""
    fenced = _FENCED.fullmatch(plain)
    found = _labels(gives, fenced[2] if fenced else plain)
    if not found:
        if refusal := find_refusal(plain):
            raise Unparsable(refusal.reason, f"{task}: {refusal.what}")
        raise Unparsable("unparsable", f"{task}: no line starts with `{gives}:`")
    if any(_unquoted(one) != _unquoted(found[0]) for one in found):
        raise Unparsable("unparsable", f"{task}: several lines start with `{gives}:` and differ")
    return found[0]


def _without_label(gives: Gives, text: str) -> str:
    """A text that begins with the task's label, without it."""
    match = _label_pattern(gives).match(text)
    return text if match is None else text[match.end() :].strip()


def _unfenced(text: str) -> str:
    """The inside of a fence that is around all of a text."""
    match = _FENCED.fullmatch(text)
    if match is None or "```" in match[2] or "~~~" in match[2]:
        return text
    return match[2].strip("\n")


_WRAPPINGS = (
    *(("**", "**"), ("*", "*"), ("_", "_"), ("`", "`")),
    *(('"', '"'), ("“", "”"), ("'", "'"), ("‘", "’"), ("«", "»")),
)


def _unquoted(text: str) -> str:
    for opening, closing in _WRAPPINGS:
        inner = text[len(opening) : -len(closing)]
        if text.startswith(opening) and text.endswith(closing) and opening not in inner and inner:
            return inner.strip()
    return text


# ---- choices


def _choice(task: Task, plain: str, candidates: int) -> str:
    value = _from_json(task, "Choice", plain)
    if value is None:
        # one form for the digits and colons of all scripts
        word = _choice_of_text(task, unicodedata.normalize("NFKC", _unfenced(plain)))
    elif isinstance(value, str):
        text = unicodedata.normalize("NFKC", value).strip()
        match = _ALONE.fullmatch(text)
        word = match[1] if match else _choice_of_text(task, text)
    elif isinstance(value, bool) or not isinstance(value, int | float) or value != value // 1:
        raise Unparsable("unparsable", f"{task}: the choice is {value!r:.80}")
    else:
        word = str(int(value)) if abs(value) < 10**MAX_DIGITS else "9" * (MAX_DIGITS + 1)
    return _candidate(task, word.lower(), candidates)


def _choice_of_text(task: Task, text: str) -> str:
    """The choice that a text names. One that it names last, in its last line, counts."""
    if alone := _ALONE.fullmatch(text.strip()):
        return alone[1]
    found = list(_CHOICE.finditer(text)) or list(_BOXED.finditer(text))
    if not found:
        raise Unparsable("unparsable", f"{task}: no line says `Choice: <number>`")
    last = found[-1]
    for one in found:
        if _MORE.match(text, one.end()):
            raise Unparsable("unparsable", f"{task}: more than one choice in a line")
    back = _TAKEN_BACK.search(text, last.end())
    if _DOUBT.match(text, last.end()) or (back and back[1].lstrip("0") != last[1].lstrip("0")):
        raise Unparsable("unparsable", f"{task}: the line of the choice takes it back")
    for one, other in pairwise(found):
        if one[1].lower() != other[1].lower() and "\n" not in text[one.end() : other.start()]:
            raise Unparsable("unparsable", f"{task}: two choices in a line")
    later = _CHOICE_BEGINS.search(text, last.end())
    differ = len({one[1].lower().lstrip("0") or "0" for one in found}) > 1
    rest = text[last.end() :]
    if later is not None or (differ and rest.strip() and "\n" in rest.strip("\n ")):
        raise Unparsable("unparsable", f"{task}: several choices, and the last line is none")
    if differ and "\n" in rest.rstrip():
        raise Unparsable("unparsable", f"{task}: several choices, and the last line is none")
    return last[1]


def _candidate(task: Task, word: str, candidates: int) -> str:
    if word in (NONE, AMBIGUOUS):
        return word
    if len(word) > MAX_DIGITS or not 1 <= int(word) <= candidates:
        raise Unparsable(
            "unknown_candidate", f"{task}: chose passage {word[:12]} of {candidates} shown"
        )
    return str(int(word))


# ---- answers to questions

_DECIMAL = r"(?<![-−.,/\d])(?:\d+(?:\.\d+)?|\.\d+)(?![.,/:%]?\d|\s*[%/])"
_WORD_OR_NUMBER = rf"(?:yes|no|ambiguous|{_DECIMAL})(?![\w-])"
_BARE = re.compile(rf"{_DRESS}({_WORD_OR_NUMBER})[\s*_\"'”\])>}}`.!]*", re.IGNORECASE)
_LINE = re.compile(
    rf"^[^\w<{{\n]*(?:(?:my|the|your|final)\s+)*(?:answer|verdict|grade|score)\b[\s*_\"'\])]*"
    rf"(?:is\b|[:=])[:\s*_\"'“\[(#`]*({_WORD_OR_NUMBER})([^\n]*)",
    re.IGNORECASE | re.MULTILINE,
)
_LINE_BEGINS = re.compile(
    r"^[^\w<{\n]*(?:(?:my|the|your|final)\s+)*(?:answer|verdict|grade|score)\b[\s*_\"'\])]*[:=]",
    re.IGNORECASE | re.MULTILINE,
)
# behind the value: punctuation, or a reason
_GOES_ON = re.compile(
    r"(?:[*_\"'”\])>}`]*\s*)(?:$|[.;!(]|[-—–]\s(?!\W*\d)|,\s*(?:because|as|since)\b|(?:because|as|since)\b)"
)
_OTHER_VALUE = re.compile(
    rf"\b(?:wait|actually|though|rather|instead|correction|should be|or|but)\b\W*(?:\w+\W+){{0,3}}?"
    rf"({_WORD_OR_NUMBER})",
    re.IGNORECASE,
)


def _verdict(task: Task, gives: Gives, plain: str, question: Question) -> str:
    """The answer to a question: the value of a JSON object, or of the last line that names one."""
    value = _from_json(task, gives, plain)
    if value is None:
        word = _word_of_text(task, unicodedata.normalize("NFKC", _unfenced(plain)))
    elif isinstance(value, bool):
        word = (YES if value else NO) if question.kind == "yes_no" else str(value)
    elif isinstance(value, int | float):
        word = f"{value:.6f}".rstrip("0").rstrip(".") if abs(value) < 1e9 else "a large number"
    elif isinstance(value, str):
        text = unicodedata.normalize("NFKC", value).strip()
        word = _word_of_text(task, text)
    else:
        raise Unparsable("unparsable", f"{task}: the answer is {value!r:.80}")
    word = word.lower()
    if question.kind == "score":
        word = score(word) or word
    try:
        question.check(word)
    except BadInput as error:
        raise Unparsable("unparsable", f"{task}: {word[:20]!r} is no answer to it") from error
    return word


def _word_of_text(task: Task, text: str) -> str:
    """The word or number that a text answers with: alone, or in its last line of that form."""
    if alone := _BARE.fullmatch(text.strip()):
        return alone[1]
    found = list(_LINE.finditer(text))
    if not found:
        if refusal := find_refusal(text):
            raise Unparsable(refusal.reason, f"{task}: {refusal.what}")
        raise Unparsable("unparsable", f"{task}: no line says `Answer: …`")
    last = found[-1]
    if not _GOES_ON.match(last[2]) or "?" in last[2]:
        raise Unparsable("unparsable", f"{task}: the line of the answer names more than one")
    if _OTHER_VALUE.search(text, last.end(1)) or _LINE_BEGINS.search(text, last.end()):
        raise Unparsable("unparsable", f"{task}: the answer is taken back")
    if any(one[1].lower() != last[1].lower() for one in found) and text[last.end() :].strip():
        raise Unparsable("unparsable", f"{task}: several answers, and the last line is none")
    return last[1]
