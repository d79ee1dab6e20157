"""Finding chat leftovers in a text: parts that belong to the conversation around it. Pure.

A model learns such debris as a shortcut: it occurs in generated texts only, never in P+. Whatever
the given texts (document, query, instruction) contain themselves is not a leftover: a page about
HTML may hold tags, a forum post may say "let me know".
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from curation.recipe.prompt import ECHO_WORDS, Prompt, plain_words
from curation.recipe.structured import DESCRIPTIONS
from curation.recipe.tasks import Gives

CHAT_TAIL_CHARACTERS = 240  # of the end: where a chat model takes its leave

_FENCE = re.compile(r"```|~~~")
_JSON = re.compile(r"[\"”]\s*[}\]]+\s*$|^\s*\{\s*[\"“]|\{\"\w+\"\s*:|[\"”]\s*,\s*$")
_ESCAPED = re.compile(r"(?<!\\)\\n|\\\"")
_TOKEN = re.compile(
    r"<\|[^|<>\n]{1,40}\|?>|<[^|<>\n]{1,40}\|>|<｜[^<>\n]{1,40}｜>|\[/?INST\]|<</?SYS>>|</?s>"
    r"|<(?:start|end)_of_turn>|<unused\d+>|<eos>|<bos>"
)
_OUR_TAG = re.compile(
    r"</?(?:think|thinking|thought|reasoning|analysis|scratchpad|answer|response|output|json|text"
    r"|new_?\w*|instruction\w*|query\w*|passage\w*|document|result|final\w*)\b[^<>\n]*>",
    re.IGNORECASE,
)
_PAGE_TAG = re.compile(
    r"</[a-z][a-z0-9]*\s*>|<(?:p|br|hr|b|i|u|em|strong|div|span|ul|ol|li|h[1-6]|a|table|tr|td|html"
    r"|body|pre|code|blockquote|section|article)\b[^<>\n]*>",
    re.IGNORECASE,
)
_FORM = re.compile(
    r"<(?:your|the|new|insert|number)\b[^<>\n]*>|\[(?:your|insert|new|the new)\b[^\[\]\n]*\]"
    r"|\{(?:document|language|query|instruction|passages?"
    r"|(?:query|instruction|passage)_(?:positive|negative))\}",
    re.IGNORECASE,
)
_HEAD = re.compile(
    r"(?:sure(?: thing)?|certainly|of course|absolutely|okay|got it|no problem|great)\b\s*[!,.:]"
    r"|(?:here(?:['’]s| is| are)|below is|this is)\b[^.\n]{0,80}"
    r"\b(?:passage|instruction|query|text|document|version|json|solution|article|story|paragraph"
    r"|rewrite|answer|result)\b[^.\n]{0,60}:"
    r"|here you (?:go|are)\b\s*[!,.:]|(?:document|text)\s*:"
    r"|as an? (?:ai|large language|language) (?:language )?(?:model|assistant)\b",
    re.IGNORECASE,
)
_TAIL = re.compile(
    r"\blet me know\b(?: (?:if|whether|how|what|should)\b|\s*[!.]?\s*$)"
    r"|\bfeel free to (?:ask|reach|let|te(?:ll)|adjust|modify|tweak|change|edit|use)"
    r"|\b(?:i )?hope (?:this|that|it)(?: (?:helps|meets|works|fits|suits)\b|(?: i|['’])s what you)"
    r"|(?:^|[.!?:…\"”)\]]\s|\n|–\s|—\s?)\W*(?:(?:so|now|okay|ok|well|and|but),? )?"
    r"(?:does|would|will) (?:this|that|it) (?:work|do|help|suit)"
    r"(?: (?:better|okay|ok|now|clarify|the trick|as (?:a|an)\b[^.?\n]{0,30}))?"
    r"(?:,? (?:for|with|to)? ?(?:you|your|what you|the (?:task|request|prompt))\b[^.?\n]{0,30})?"
    r"\?\W*$"
    r"|\bhappy to (?:revise|adjust|change|rewrite|tweak)\b|\bstop generating\W*$|</\w{0,12}$"
    r"|\bplease note(?: that)? (?:i|this (?:passage|text|version)|the (?:passage|text))\b"
    r"|(?:^|\n)\W*(?:rewritten|revised|modified|adapted|edited) to \w+"
    r"|\b(?:the (?:passage|text) above|this (?:passage|text))"
    r" (?:does not|doesn['’]t|never|avoids|omits|deliberately)\b"
    r"|\bper the (?:requirements?|instructions?|request)\b"
    r"|\bis there (?:any|some)thing\b[^.\n]{0,40}\b(?:else|you['’]d like|you would like)\b"
    r"|\bwould you like (?:me|another|to see|any|some)\b|\bdo you (?:want|need) me to\b"
    r"|\bis this what you (?:wanted|had in mind|meant)\b|\bthank you\W*$"
    r"|\n\W*this (?:version|response|passage|rewrite|revision|rewritten|revised)\b"
    r"|\n\W*(?:as requested|(?:passage|text|article) (?:re)?written)\b"
    r"|\n\W*i(?:['’]ve| have)? (?:kept|made sure|ensured|tried to|avoided|rewrote|changed)\b"
    r"[^\n]{0,60}\b(?:length|style|tone|structure|format|similar|document|original|facts?)\b"
    r"|\bif you (?:need|want|have|would like|['’]d like) (?:any(?:thing)?|more|further|another|me)"
    r"[^.!?\n]{0,60}(?:else|help|questions?|changes|versions?|adjust\w*|know|me to)"
    r"|\bi(?:['’]m| am|['’]d be| would be) happy to\b|\bplease let me know\b",
    re.IGNORECASE,
)
_NOTE = re.compile(
    r"^\s*(?:\*\*|__)(?:analysis|comments?|remarks?)\b\W{0,4}|"
    r"^\W*(?:notes?|explanation|reasoning|rationale|justification|word count|key differences"
    r"|differences|changes(?: made)?|why this(?: works)?|disclaimer)\b[^\n:]{0,30}:"
    r"|\bword count\s*:|^\W*end of (?:the )?(?:passage|text|document)\W*$"
    r"|^[\s#*_]*(?:explanation|reasoning|rationale|why (?:this|it) works|key differences)\W*$"
    r"|^\W*note that (?:all|the|this|these|i)\b|^\W*(?:the )?end\W*$"
    r"|^\W*(?:\d+ words|words: \d+)\W*$",
    re.IGNORECASE | re.MULTILINE,
)
_RULE = re.compile(r"^\s*(?:-{3,}|\*{3,}|_{3,}|={3,})\s*$", re.MULTILINE)
_TURN = re.compile(r"^\s*(?:user|assistant|system|human|ai)\s*:", re.IGNORECASE | re.MULTILINE)
_LABEL = re.compile(
    r"(?:^|[.!?]\s+|\n)\W*(?:(?:new|old|original|your|final|search|positive|negative|revised"
    r"|rewritten|modified|opposite)\s+)*(?:instruction|query|passage)\W{0,3}:",
    re.IGNORECASE,
)
_SCENARIO_SIGN = re.compile(
    r"(?:^|\n)\W*(?:[IQP][12]?[-+−–]\s*:|P[12]?[-+−–]\s*(?:$|\n)|\((?:new|revised|rewritten)\))"
    r"|^\W*[IQP][12]?[-+−–]\s+\S"
    r"|^\W*(?:new|negative|positive|opposite|revised|search) (?:instruction|query|passage)\s+[-–—]",
    re.IGNORECASE,
)
_REMARK = re.compile(
    r"[(\[][^()\[\]\n]*\b(?:contradict\w*|revis(?:ed|ion)|rewritten|reversed|opposite|as requested"
    r"|(?:from|of) the original|original (?:focus|instruction|query))\b[^()\[\]\n]*[)\]]\W*$"
    r"|\s[-–—]\s*(?:the )?(?:opposite|reverse|contrary) of\b[^\n]*$"
    r"|[(\[](?:an? |the )?(?:new|negative|positive|opposite|contradictory)"
    r" (?:instruction|query)\W*$"
    r"|(?://|\s[-–—])\s*(?:an? |the )?(?:new|negative|opposite|contradictory)"
    r"(?: (?:instruction|query))?\W*$"
    r"|\bthis (?:contradicts|reverses) the\b"
    r"|[.!?;]\s+(?:explanation|rationale|reasoning|note)\s*:",
    re.IGNORECASE,
)
_ENTITY = re.compile(r"&(?:lt|gt|amp|quot|apos|nbsp|#\d{2,5}|#x[0-9a-f]{2,5});", re.IGNORECASE)
_TALK = re.compile(
    r"\b(?:the|your|this|my|a) (?:new|old|original|previous|given|above|same|first) "
    r"(?:instruction|query|passage)\b",
    re.IGNORECASE,
)
_TALK_IN_PASSAGE = re.compile(r"\b(?:the|this|your|each) (?:instruction|query)\b", re.IGNORECASE)
_LIST = re.compile(r"\s*(?:\(?\d{1,2}[.)]\s|[-*•–—]\s|note\b[^\n]{0,12}:)", re.IGNORECASE)
_ECHO = re.compile(
    r"(?:(?:the|your|an?|my|new|old|search|given|negative|positive|contradict(?:ory|ing)|opposite"
    r"|different|revised|rewritten|single|short),?\s+)*"
    r"(?:instruction|query|passage|string|text|document|value|answer|n/?a|null|none|undefined|todo)"
    r"(?:\s+(?:here|text|goes here|alone))?",
    re.IGNORECASE,
)


def find_leftover(
    gives: Gives, text: str, *, prompt: Prompt | None = None, given: Mapping[str, str] | None = None
) -> str | None:
    """A short description of the leftover in a text; None for a clean one.

    `given`: the inputs of the request; `language` among them says that the texts are code.
    """
    source = "\n".join((given or {}).values())
    code = bool((given or {}).get("language"))
    lowered = text.lower()
    for sign in _CODE_SIGNS if code else _SIGNS:
        if sign.gives not in ("", gives) or not any(one in lowered for one in sign.needs):
            continue
        found = sign.pattern.search(text)
        if found is not None and sign.pattern.search(source) is None:
            return f"{sign.what} (“{_shortened(found.group())}”)"
    return (
        _at_an_end(text, source)
        or _marks(text, source, code=code)
        or _echo(text, prompt, source, line=gives != "Passage")
    )


@dataclass(frozen=True)
class _Sign:
    """A kind of leftover; a text without any of `needs` (lower case) is not searched for it."""

    what: str
    pattern: re.Pattern[str]
    needs: tuple[str, ...]
    gives: str = ""


_DESCRIPTIONS = [plain_words(one) for one in DESCRIPTIONS.values()]  # of the schema's fields
_NOTE_WORDS = (
    ":",
    "**",
    "__",
    "end",
    "explanation",
    "reasoning",
    "rationale",
    "works",
    "note",
    "words",
    "key",
)
_REMARK_WORDS = ("(", "[", " of ", ":", "/", "-", "–", "—", "this ")
_PROMPT_WORDS = ("instruction", "query", "passage")
_CODE_SIGNS = (
    _Sign("a code fence", _FENCE, ("```", "~~~")),
    _Sign("a token of a chat template", _TOKEN, ("<", "inst]")),
    _Sign("a tag", _OUR_TAG, ("<",)),
    _Sign("a place of the prompt's form", _FORM, ("<", "[", "{")),
    _Sign("a label of the answer's form", _LABEL, (":",)),
)
_SIGNS = (
    *_CODE_SIGNS,
    _Sign("the rest of a JSON object", _JSON, ("}", "]", "{")),
    _Sign("a written-out escape", _ESCAPED, ("\\",)),
    _Sign("a tag", _PAGE_TAG, ("<",)),
    _Sign("a further turn of the dialogue", _TURN, (":",)),
    _Sign("a note next to the text", _NOTE, _NOTE_WORDS),
    _Sign("a sign of the scenario", _SCENARIO_SIGN, ("-", "+", "−", "–", "—", "(")),
    _Sign("a written-out character", _ENTITY, ("&",)),
    _Sign("a remark next to the instruction", _REMARK, _REMARK_WORDS, "Instruction"),
    _Sign("a remark next to the query", _REMARK, _REMARK_WORDS, "Query"),
    _Sign("a rule of dashes", _RULE, ("---", "***", "___", "===")),
    _Sign("talk about the prompt", _TALK, _PROMPT_WORDS),
    _Sign("talk about the prompt", _TALK_IN_PASSAGE, _PROMPT_WORDS, "Passage"),
)


def _at_an_end(text: str, source: str) -> str | None:
    if (head := _HEAD.match(text.lstrip())) and not _HEAD.match(source.lstrip()):
        return f"a chat's beginning (“{_shortened(head.group())}”)"
    tail = _TAIL.search(text[-CHAT_TAIL_CHARACTERS:])
    if tail is not None and _TAIL.search(source) is None:
        return f"a chat's end (“{_shortened(tail.group())}”)"
    return None


def _marks(text: str, source: str, *, code: bool) -> str | None:
    if code:
        return None
    if text.count("**") % 2 and "**" not in source:
        return "a single mark of bold type (“**”)"
    for opening, closing in (('"', '"'), ("“", "”"), ("{", "}"), ("[", "]")):
        opened = text.count(opening)
        is_open = opened % 2 if opening == closing else opened != text.count(closing)
        if is_open and (text.startswith(opening) or text.rstrip(",. ").endswith(closing)):
            return f"half of a pair of marks (“{opening}{closing}”)"
    return None


def _echo(text: str, prompt: Prompt | None, source: str, *, line: bool) -> str | None:
    """Words of the prompt in place of an answer, or among it."""
    if line and (listed := _LIST.match(text)):
        return f"a numbered or listed note (“{_shortened(listed.group())}”)"
    plain = text.strip(" \t\n\"'“”*.…!:[]()<>")
    listed_words = plain_words(text)
    if not plain or _ECHO.fullmatch(plain) or listed_words in _DESCRIPTIONS:
        return f"an echo of the form (“{_shortened(text)}”)"
    if prompt is None:
        return None
    for run in zip(*(listed_words[start:] for start in range(ECHO_WORDS)), strict=False):
        if run in prompt.runs and " ".join(run) not in " ".join(plain_words(source)):
            return f"the prompt's own words (“{' '.join(run)}”)"
    return None


def _shortened(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 60 else text[:57] + "…"
