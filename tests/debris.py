"""Debris that models and servers leave in answers, kind by kind, in many languages.

`finish` is the reason to end that the server names. `cleaned`: the text itself is to be kept,
without the debris; of all others nothing may be stored. `only`: the labels that it is about.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

LABELS = ("Instruction", "Query", "Passage")
LINES = ("Instruction", "Query")


@dataclass(frozen=True)
class Debris:
    """An answer with debris: `answer` makes it of a label ("Passage") and the text meant."""

    kind: str
    name: str
    answer: Callable[[str, str], str]
    finish: str = "stop"
    cleaned: bool = False
    only: tuple[str, ...] = LABELS


FINISHES = (
    *("error", "abort", "MAX_TOKENS", "model_length", "max_tokens"),
    *("length_capped", "cancelled", "ERROR_LIMIT", "timeout", "FinishReason.MAX_TOKENS", "OTHER"),
    *("maxPredictedTokensReached", "contextLengthReached", "TIME_LIMIT", "max_output_tokens"),
    *("incomplete", "pause_turn", "network_error", "repetition", "MALFORMED_FUNCTION_CALL"),
)
REFUSED_FINISHES = ("SAFETY", "RECITATION", "PROHIBITED_CONTENT", "guardrail_intervened")
REFUSED_FINISHES += ("content-filter", "sensitive", "FINISH_REASON_BLOCKLIST", "ERROR_TOXIC")
SOURCES = (
    *("Sources: Wikipedia, Encyclopaedia Britannica", "Source: https://example.org/tower"),
    *("**Sources:**\n- Wikipedia", "References:\n1. A History of Towers (1999)", "Citations: [1]"),
    *("Quellen: Wikipedia, Stadtarchiv", "Fuentes: Wikipedia", "Sources : Wikipédia"),
    *("Fonti: Wikipedia", "Bronnen: Wikipedia", "Источники: Википедия", "来源：维基百科"),
    *("参考文献：《塔史》", "出典：ウィキペディア", "출처: 위키백과", "المصادر: ويكيبيديا"),
    *("Źródła: Wikipedia", "Kaynaklar: Vikipedi", "स्रोत: विकिपीडिया", "Referências: Wikipédia"),
)
FICTION = (
    *("This is a fictional account written for illustration.", "(This passage is fictional.)"),
    "All names and events in this text are invented.",
    "Disclaimer: this is a purely fictitious description.",
    "This account is fictional and does not describe real events.",
    "Dies ist ein fiktiver Bericht.",
    "(Dieser Text ist frei erfunden.)",
    "Ceci est un récit fictif.",
    "Este es un relato ficticio.",
    "Questo è un racconto di fantasia.",
    "Este é um relato fictício.",
    "（以上内容纯属虚构。）",
    "これは架空の記述です。",
    "이것은 가상의 이야기입니다.",
    "Это вымышленный рассказ.",
    "هذا نص خيالي.",
)
MARKERS = (
    *("<pad><pad><pad>", "[PAD][PAD]", "<unk>", "[UNK]", "<mask>", "<0x0A><0x0A>", "<s>"),
    *("【4†source】", "【3:0†report.pdf】", ":contentReference[oaicite:0]{index=0}", "[oaicite:2]"),
    *("\ue200cite\ue202turn0search0\ue201", "turn0search3", "[citation:4]", "[^1^]", "[doc2]"),
    *("(https://example.org/a?utm_source=assistant.example.com)", "</w>", "[/ASSISTANT]"),
    *("[continued]", "[truncated]", "(to be continued by the assistant)", "[End of output]"),
    *("naÃ¯ve cafÃ©", "itâ€™s a villageâ€™s", "\x1b[0m", "\x08", "\\u2014", "\\boxed{}"),
)
SPLIT = ("Ġ", "▁", "@@ ", " ##")  # between the words of a text, as tokenizers write them
INVISIBLE = (
    "\u200b",
    "\u2060",
    "\u200e",
    "\u202c",
    "\u00ad",
    "\ufeff",
    "\U000e0041",
    "\u200c",
    "\u200d",
)
ERRORS = (
    *("502 Bad Gateway", "HTTP 503: Service Unavailable", "429 Too Many Requests"),
    *("Error: 500 Internal Server Error", "504 Gateway Time-out\nnginx/1.24.0", "Bad Gateway"),
    *("upstream connect error or disconnect/reset before headers", "Internal Server Error"),
    *("Rate limit reached for requests", "Error: maximum context length exceeded"),
    "Traceback (most recent call last):\n  File 'serve.py', line 3",
    *("An error occurred while processing your request.", "Network error. Please try again."),
    *("The model is overloaded, please try again later.", "[ERROR]", "Request timed out."),
    *("undefined", "[object Object]", "NaN", "None", "null"),
)
REFUSALS = (
    *("I must respectfully decline.", "I respectfully decline to write this.", "I won't do that."),
    "I'm afraid I have to decline this request.",
    "Unfortunately, I'm unable to produce that passage.",
    "I cannot in good conscience write this.",
    "I don't feel comfortable writing misleading text.",
    "I'd rather not produce a text like that.",
    "My apologies, but that is something I cannot generate.",
    "This request goes against my guidelines.",
    "As an AI, I don't have opinions on towers.",
    "I do not have the ability to write this.",
    "Es tut mir leid, aber dabei kann ich nicht helfen.",
    "Es tut mir leid.",
    "Leider kann ich diese Anfrage nicht erfüllen.",
    "Ich kann diesen Text nicht schreiben.",
    "Je suis désolé, mais je ne peux pas vous aider.",
    "Désolé, je ne peux pas écrire cela.",
    "Je ne suis pas en mesure de fournir ce texte.",
    "Lo siento, pero no puedo ayudar con eso.",
    "No puedo generar ese contenido.",
    "Mi dispiace, ma non posso aiutarti.",
    "Desculpe, mas não posso ajudar com isso.",
    "Het spijt me, maar daar kan ik niet bij helpen.",
    "Przepraszam, ale nie mogę w tym pomóc.",
    "Извините, но я не могу с этим помочь.",
    "К сожалению, я не могу выполнить этот запрос.",
    "Вибачте, але я не можу допомогти.",
    *("抱歉，我无法协助处理该请求。", "很抱歉，我不能写这样的内容。", "对不起，我无法回答。"),
    *("我无法提供此内容。", "抱歉。", "申し訳ありませんが、お手伝いできません。"),
    *("すみませんが、その文章は書けません。", "죄송하지만 도와드릴 수 없습니다."),
    *("عذرًا، لا أستطيع المساعدة في ذلك.", "متأسفم، نمی‌توانم کمک کنم."),
    *("माफ़ कीजिए, मैं इसमें मदद नहीं कर सकता।", "Üzgünüm, bu konuda yardımcı olamam."),
    *("Maaf, saya tidak dapat membantu.", "Xin lỗi, tôi không thể giúp việc này."),
    *("ขออภัย ฉันไม่สามารถช่วยได้", "Beklager, men det kan jeg ikke hjelpe med."),
    *("Tyvärr kan jag inte hjälpa till med det.", "Λυπάμαι, δεν μπορώ να βοηθήσω."),
    # without an apology
    *("I won't be writing this passage.", "That's not something I can help with."),
    *("This request cannot be fulfilled.", "I would prefer not to.", "I'd rather not."),
    *("Sorry, no.", "I'm going to have to pass on this one."),
    *("I am not permitted to write that.", "I'm not going to write this.", "I refuse."),
    *("Request denied.", "My guidelines do not allow this.", "This goes against my guidelines."),
    *("Je regrette, mais je ne peux pas faire cela.", "Je dois refuser cette demande."),
    *(
        "Je refuse d'écrire ce texte.",
        "죄송합니다. 도와드릴 수 없습니다.",
        "이 요청은 처리할 수 없습니다.",
    ),
    *("Ich muss diese Anfrage leider ablehnen.", "Das kann ich leider nicht tun."),
    *("Dabei kann ich nicht helfen.", "我不会写这样的内容。", "对不起。我不能帮忙。"),
    *("恕我无法从命。", "Não me é possível ajudar com isso.", "Tengo que rechazar esta solicitud."),
    *("Nie mogę tego zrobić.", "Не могу выполнить эту просьбу.", "Я вынужден отказаться."),
    *("Я не стану это писать.", "Jag kan inte hjälpa till med det."),
    *("Jeg kan ikke hjælpe med det.", "En voi auttaa tässä.", "Bunu yapamam."),
    *("Nu pot să ajut cu asta.", "Îmi pare rău, dar nu pot face asta."),
    *("Sajnálom, ebben nem tudok segíteni.", "Съжалявам, не мога да помогна с това."),
    "Žao mi je, ali ne mogu pomoći.",
)
CORRECTIONS = (
    "Wait, that still names the year. Let me fix it: {first}",
    "Actually, a better version would be: {first}",
    "Correction: {first}",
    "Hmm, that is too close to the original. Let me try again.\n{first}",
    "On second thought, this is better:\n\n{first}",
    "Scratch that. {first}",
    "Let me rewrite this.\n\n{first}",
    "Oops, I repeated the document. Here it is again:\n{first}",
    "Second attempt: {first}",
    "Moment, das nennt noch das Jahr. Besser: {first}",
    "Korrektur: {first}",
    "Correction : {first}",
    "Espera, eso no cumple. Versión corregida: {first}",
    "Attendez, cela ne convient pas. Version corrigée : {first}",
    *("更正：{first}", "等等，这不对。修改后：{first}", "訂正：{first}", "정정: {first}"),
    *("Исправление: {first}", "Подождите, это не так. Исправленная версия: {first}"),
    "تصحيح: {first}",
)
REMARKS = (
    *("(This contradicts the original document.)", "[This passage differs from the original.]"),
    "This directly contradicts the source document.",
    "*(Unlike the original passage, this one omits the year.)*",
    "(Dies widerspricht dem Originaldokument.)",
    "(Cela contredit le document original.)",
    "(Esto contradice el documento original.)",
    "（这与原文相矛盾。）",
    "（これは元の文書と矛盾します。）",
    "(Это противоречит исходному документу.)",
    "(هذا يتعارض مع المستند الأصلي.)",
    "(AI-generated)",
    "[Generated by an AI assistant]",
)
TALK = (
    *("Ich hoffe, das hilft!", "Lass mich wissen, ob du Änderungen möchtest."),
    *("J'espère que cela vous convient.", "N'hésitez pas à me demander une autre version."),
    *("Espero que esto ayude.", "Avísame si necesitas cambios.", "Spero che sia utile!"),
    *("Espero ter ajudado!", "希望这对您有所帮助！", "如果您需要修改，请告诉我。"),
    *("お役に立てれば幸いです。", "도움이 되었으면 좋겠습니다.", "Надеюсь, это поможет!"),
    *("Дайте знать, если нужны правки.", "آمل أن يكون هذا مفيدًا."),
    *("As an AI language model, I made this up.", "As an AI assistant I have no access to it."),
    *("Done.\n\n### Response:", "Done.\n### Instruction", "Done.\nassistant", "Done.\n\nuser\n"),
)
HEADS = (
    *("Natürlich! ", "Gerne! Hier ist der Text:\n\n", "Bien sûr ! ", "Voici le passage :\n\n"),
    *("¡Claro! ", "Aquí está el texto:\n", "Certo! ", "Claro! Aqui está o texto:\n"),
    *("当然！", "好的，以下是文章：\n", "もちろんです。", "以下は文章です：\n", "물론입니다! "),
    *("Конечно! ", "Вот текст:\n", "بالتأكيد! ", "Oczywiście! ", "Tabii ki! "),
)
PLACEHOLDERS = (
    *("[YEAR]", "[COMPANY NAME]", "[Name]", "[insert date]", "{YEAR}", "{{name}}", "<YEAR>"),
    *("[JAHR]", "[AÑO]", "[ГОД]", "[年份]", "【年份】", "XX/XX/XXXX", "[Your City]", "$YEAR$"),
    *(
        "[YEAR OF BIRTH]",
        "<COMPANY_NAME>",
        "{DATE}",
        "[INSERT TITLE HERE]",
        "[CITY/COUNTRY]",
        "[TBD]",
    ),
)


def all_debris() -> Iterator[Debris]:
    """Every entry; kinds repeat, names do not."""
    for finish in FINISHES:
        yield Debris("cut off", finish, _half, finish)
    for finish in REFUSED_FINISHES:
        yield Debris("filtered", finish, _half, finish)
    for mark in INVISIBLE:
        yield Debris("invisible", f"U+{ord(mark):04X}", partial(_strewn, mark), cleaned=True)
    for mark in SPLIT:
        yield Debris("tokenizer", mark, partial(_between, mark))
    ends = {"sources": SOURCES, "fiction": FICTION, "remark": REMARKS, "talk": TALK}
    for kind, found in ends.items():
        for end in found:
            yield Debris(
                kind, f"{end} (paragraph)", partial(_after, "\n\n", end), only=("Passage",)
            )
            if "\n" not in end:
                yield Debris(kind, end, partial(_after, " ", end))
    for end in MARKERS:
        yield Debris("marker", end, partial(_after, " ", end))
        yield Debris("marker", f"{end} (inside)", partial(_inside, end), only=("Passage",))
    for error in ERRORS:
        yield Debris("error", error, partial(_alone, error))
    for refusal in REFUSALS:
        yield Debris("refusal", refusal, partial(_alone, refusal))
    for head in HEADS:
        yield Debris("head", head, partial(_before, head), only=("Passage",))
    for place in PLACEHOLDERS:
        yield Debris("placeholder", place, partial(_inside, f" {place} "))
    for end in CORRECTIONS:
        yield Debris("correction", end, partial(_corrected, end))
        yield Debris("correction", f"{end} (JSON)", partial(_corrected_json, end))
    for form in ("{key}: |\n  {text}", "```yaml\n{key}: |-\n  {text}\n```", "{key}: >\n  {text}\n"):
        yield Debris("YAML", form, partial(_form, form), cleaned=True)
    for one, two in (("new_{key}", "{key}"), ("{key}", "final_{key}"), ("{key}", "New {key}")):
        yield Debris("two keys", f"{one}, {two}", partial(_two_keys, one, two))


def _half(label: str, text: str) -> str:
    return f"{label}: {text[: len(text) // 2]}"


def _alone(whole: str, label: str, text: str) -> str:
    return f"{label}: {whole}"


def _before(head: str, label: str, text: str) -> str:
    return f"{label}: {head}{text}"


def _after(gap: str, end: str, label: str, text: str) -> str:
    return f"{label}: {text}{gap}{end}"


def _inside(mark: str, label: str, text: str) -> str:
    first, _, rest = text.rpartition(" ")
    return f"{label}: {first}{mark}{rest}"


def _between(mark: str, label: str, text: str) -> str:
    return f"{label}: {text.replace(' ', mark)}"


def _strewn(mark: str, label: str, text: str) -> str:
    return f"{label}: {mark}{text.replace(' ', f' {mark}')}{mark}"


def _corrected(how: str, label: str, text: str) -> str:
    return f"{label}: {text}\n\n{how.replace('{first}', text[: len(text) // 2])}"


def _corrected_json(how: str, label: str, text: str) -> str:
    end = how.replace("{first}", text[: len(text) // 2])
    return f"{json.dumps({label.lower(): text}, ensure_ascii=False)}\n\n{end}"


def _form(form: str, label: str, text: str) -> str:
    return form.replace("{key}", label.lower()).replace("{text}", text)


def _two_keys(one: str, two: str, label: str, text: str) -> str:
    keys = [each.replace("{key}", label.lower()) for each in (one, two)]
    return json.dumps(dict(zip(keys, (text, text[: len(text) // 2]), strict=True)))


CLEAN: dict[str, tuple[str, ...]] = {
    "Passage": (
        "می‌خواهم بدانم کتاب‌ها کجا نگهداری می‌شوند و چه کسی آن‌ها را می‌خواند.",
        "क्‍षेत्र में बाढ़ के बाद मीनार फिर से बनाई गई और घंटी वहीं रखी गई।",
        "The family 👨‍👩‍👧 went up the tower ❤️ and saw 🏴󠁧󠁢󠁳󠁣󠁴󠁿 flags.",
        "ภาษาไทย\u200bเขียน\u200bติดกัน และหอคอยถูกสร้างใหม่ในปีนั้น",
        "המגדל\u200e (Tower) נבנה מחדש בשנת 1911 על ידי בנאים מן העמק.",
        "Il-Ġimgħa filgħodu ż-żwar jitilgħu sal-Ġnien ta' fuq, fejn Ċensu jżomm il-qanpiena.",
        "“Wait, I know that voice,” she said, and put the lamp on the sill of the window.",
        "Leider kann man den Turm im Winter nicht besichtigen, weil die Treppe vereist.",
        "Unfortunately, the tower cannot be seen from the valley once the trees are in leaf.",
        "The source of the river lies above the village. Its reference level was cut in 1911.",
        "Sorry is what the mason's son heard most often that year, and he could not stand it.",
        "Robin Hood is a fictional outlaw, yet a grave in Yorkshire is shown as his.",
        "Die Legende vom Glockengießer ist erfunden, der Turm dagegen steht noch heute.",
        "我不能忘记那座塔。它在一九一一年重建，石头是山谷里的石匠凿的。",
        "Я не могу забыть эту башню: её построили в 1911 году каменщики из долины.",
        "No puedo olvidar la torre que levantaron los canteros del valle en 1911.",
        "The committee met in Room 502 and heard that the gateway was in a bad state.",
        "On second reading the mason's accounts add up: 1911 was the year of the roof.",
        "Der Moment, in dem die Glocke fiel, steht in keiner Chronik des Dorfes.",
        "Let me begin with the bell, because the bell is older than everything around it.",
        "La corrección de los planos llevó un año, y la versión final se perdió en el incendio.",
        "Of the towers named here none is invented; all the people in the picture are known.",
        "Prices rose 12% [see the table in the annex] while wages (in real terms) fell.",
        "The end of the story is known: the tower stands, and the bell still rings at noon.",
        "Polyethylene glycol [PEG] coats the beam, as a member of the alliance [NATO] had asked.",
        "The Confederation [CAF] and the league [NFL-AFC] paid [USD 40,000] for the new bell.",
        "The [UNESCO WORLD HERITAGE] sign was set up by the valley [ADD] in 1911.",
        "In the template every <TOWER> becomes $TOWER$ and {BELL} is left as it stands.",
        "The supercluster is wide [110 million light-years], as told in [New York Magazine].",
    ),
    "Instruction": (
        "I can't eat gluten, so only recipes without flour, please.",
        "Unfortunately I missed the lecture; find me a summary that a beginner can follow.",
        "I'm not comfortable with horror. Show me something gentle about old towers.",
        "Better sources than blogs: only what a museum or an archive has published.",
        "Ich kann kein Englisch, bitte nur Texte auf Deutsch.",
        "No puedo leer textos largos; quiero solo un párrafo sobre la torre.",
        "我不能吃辣，请只给我不辣的做法。",
        "Texts that correct a common error about the tower, not the ones that repeat it.",
        "فقط متن‌هایی که درباره‌ی سال ساخت هستند.",
        "Explain how PEG coatings work. Sources: peer-reviewed only",
        "Only texts with dates of the tower. Sources: Peer-reviewed journals only, no blogs.",
        "Show me the tower's history. References: at least two, none older than ten years.",
        "Nur Texte über den Turm. Quellen: Nur amtliche Statistik.",
        "Texte über den Turm. Quellen: ausschließlich Fachzeitschriften",
        "关于塔的文章，来源：仅限政府网站",
        "Textes sur la tour. Sources : officielles uniquement",
    ),
    "Query": (
        "what does 502 bad gateway mean",
        "es tut mir leid auf englisch",
        "how to say sorry in korean",
        "is robin hood a fictional character",
        "can't connect to the printer",
        "抱歉用英语怎么说",
        "sources of the nile river",
        "what is a better version of bubble sort called",
        "404 not found nginx",
        "502 Bad Gateway after deploy to kubernetes",
        "error 403: forbidden when i open phpmyadmin",
        "connection error please check your network roblox",
        "rate limit reached for requests in my python script",
        "what does [PEG] mean on a label",
    ),
}
