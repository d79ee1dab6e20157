"""Answers in the shape real servers give, each with the text it holds or the reason to drop it.

Every case is a whole response body as one of the servers sends it (OpenAI, Azure, vLLM with the
Qwen3 and DeepSeek-R1 templates, llama.cpp, Ollama, TGI, LM Studio, Mistral, the compatible
endpoints of Gemini and Anthropic) and what has to become of it: `want` is the text or the choice,
`drop` the reason. The texts are written here.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

X = "Find texts that describe the tower before the great flood."
Q = "when was the village tower rebuilt"
P = "The tower was rebuilt in 1911. Masons from the valley cut the stones by hand."
P2 = f"{P}\n\nIts bell came from the old church and still rings at noon."
CODE = "def area(width, height):\n    return width * height"
INSTRUCTION, QUERY = "instruction_negative", "query_negative"
PASSAGE, JUDGE = "passage_instruction_negative", "validation"
GIVEN = {
    "document": "The tower of the village was built in 1850, and the flood of 1862 spared it.",
    "query_positive": "how old is the village tower",
    "instruction_positive": "I only want to read about the year of building.",
    "language": "",
}
USAGE = {"prompt_tokens": 412, "completion_tokens": 37, "total_tokens": 449}


@dataclass(frozen=True)
class Case:
    """One body of a response; exactly one of `want` and `drop` is set."""

    name: str
    task: str
    body: dict[str, Any]
    want: str | None = None
    drop: str | None = None
    given: dict[str, str] = field(default_factory=lambda: dict(GIVEN))


# ---- the servers


def openai(content: Any, finish: str = "stop", **message: Any) -> dict[str, Any]:
    """OpenAI: `refusal` and `annotations` beside the content, details of tokens."""
    details = {"reasoning_tokens": 0, "audio_tokens": 0}
    given = {"role": "assistant", "content": content, "refusal": None, "annotations": []} | message
    return {
        "id": "chatcmpl-BxQ1",
        "object": "chat.completion",
        "created": 1763800000,
        "model": "gpt-5-mini-2025-08-07",
        "choices": [{"index": 0, "message": given, "finish_reason": finish}],
        "usage": USAGE | {"completion_tokens_details": details},
        "service_tier": "default",
    }


def azure(content: Any, finish: str = "stop") -> dict[str, Any]:
    """Azure OpenAI: the results of its content filter beside each choice."""
    body = openai(content, finish)
    safe = {"hate": {"filtered": False, "severity": "safe"}}
    body["choices"][0] |= {"content_filter_results": safe, "logprobs": None}
    return body | {"prompt_filter_results": [{"prompt_index": 0, "content_filter_results": safe}]}


def vllm(content: Any, finish: str = "stop", **message: Any) -> dict[str, Any]:
    """vLLM: `reasoning_content` (older) or `reasoning` (newer) and a `stop_reason`."""
    given = {"role": "assistant", "content": content, "tool_calls": []} | message
    choice = {"index": 0, "message": given, "finish_reason": finish, "stop_reason": None}
    return {
        "id": "chatcmpl-5b7e",
        "object": "chat.completion",
        "created": 1763800000,
        "model": "Qwen/Qwen3-8B",
        "choices": [choice | {"logprobs": None}],
        "usage": USAGE | {"prompt_tokens_details": None},
        "prompt_logprobs": None,
        "kv_transfer_params": None,
    }


def llama_cpp(content: Any, finish: str = "stop", **message: Any) -> dict[str, Any]:
    """llama.cpp's server: timings beside the usage."""
    given = {"role": "assistant", "content": content} | message
    return {
        "choices": [{"finish_reason": finish, "index": 0, "message": given}],
        "created": 1763800000,
        "model": "gpt-3.5-turbo",
        "system_fingerprint": "b7100-1a2b3c",
        "object": "chat.completion",
        "usage": USAGE,
        "id": "chatcmpl-L7xQ",
        "timings": {"prompt_n": 412, "predicted_n": 37, "predicted_per_second": 41.2},
    }


def ollama(content: Any, finish: str = "stop", **message: Any) -> dict[str, Any]:
    """Ollama's /v1: `reasoning` beside the content of a thinking model."""
    given = {"role": "assistant", "content": content} | message
    return {
        "id": "chatcmpl-877",
        "object": "chat.completion",
        "created": 1763800000,
        "model": "deepseek-r1:8b",
        "system_fingerprint": "fp_ollama",
        "choices": [{"index": 0, "message": given, "finish_reason": finish}],
        "usage": USAGE,
    }


def tgi(content: Any, finish: str = "stop") -> dict[str, Any]:
    """Text Generation Inference: an empty id, `eos_token` as an end in older versions."""
    body = llama_cpp(content, finish)
    del body["timings"]
    return body | {"id": "", "model": "meta-llama/Llama-3.1-8B", "system_fingerprint": "3.3.4"}


def lm_studio(content: Any, finish: str = "stop", **message: Any) -> dict[str, Any]:
    """LM Studio: an empty `stats` object."""
    body = ollama(content, finish, **message)
    return body | {"stats": {}, "system_fingerprint": "qwen3-8b@q4_k_m"}


def mistral(content: Any, finish: str = "stop") -> dict[str, Any]:
    """Mistral: content as a list of parts for its reasoning models, `prefix` in the message."""
    given = {"role": "assistant", "content": content, "tool_calls": None, "prefix": False}
    return {
        "id": "cmpl-e5cc",
        "object": "chat.completion",
        "created": 1763800000,
        "model": "magistral-medium-2509",
        "choices": [{"index": 0, "finish_reason": finish, "message": given}],
        "usage": USAGE,
    }


def gemini(content: Any, finish: str = "stop", **message: Any) -> dict[str, Any]:
    """Gemini's compatible endpoint: no `content` at all where nothing came."""
    given = {"role": "assistant", **({} if content is None else {"content": content})} | message
    return {
        "choices": [{"finish_reason": finish, "index": 0, "message": given}],
        "created": 1763800000,
        "id": "aXkiaZ",
        "model": "gemini-2.5-flash",
        "object": "chat.completion",
        "usage": {"prompt_tokens": 412, "completion_tokens": 37, "total_tokens": 901},
    }


def anthropic(content: Any, finish: str = "stop") -> dict[str, Any]:
    """Anthropic's compatible endpoint: no details of tokens, never a `refusal`."""
    body = openai(content, finish)
    body |= {"id": "msg_01Xy", "model": "claude-sonnet", "system_fingerprint": None}
    body["usage"] = USAGE | {"completion_tokens_details": None}
    return body


def dumped(**given: Any) -> str:
    return json.dumps(given, ensure_ascii=False)


def thought(*texts: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": [{"type": "text", "text": one} for one in texts]}


def part(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


FENCE = "```"
DRAFT = "Instruction: a draft about the bell. Or better about the masons?"


def cases() -> Iterator[Case]:
    """All cases; names are unique."""
    yield from _plain()
    yield from _reasoning()
    yield from _json()
    yield from _choices()
    yield from _leftovers()
    yield from _debris()
    yield from _bodies()


def _plain() -> Iterator[Case]:
    def text(name: str, content: str, want: str = X, task: str = INSTRUCTION) -> Case:
        return Case(name, task, openai(content), want=want)

    yield text("a label", f"Instruction: {X}")
    yield text("a label, then blank lines", f"\n\nInstruction: {X}\n\n")
    yield text("a bold label", f"**Instruction:** {X}")
    yield text("a bold label, colon outside", f"**Instruction**: {X}")
    yield text("a heading as label", f"### Instruction:\n{X}")
    yield text("a label in capitals", f"INSTRUCTION: {X}")
    yield text("a label of two words", f"New instruction: {X}")
    yield text("a quoted text", f'Instruction: "{X}"')
    yield text("curly quotes", f"Instruction: “{X}”")
    yield text("a bold text", f"Instruction: **{X}**")
    yield text("a preface in its own line", f"Sure! Here it is:\n\nInstruction: {X}")
    yield text("a fence around it all", f"{FENCE}\nInstruction: {X}\n{FENCE}")
    yield text("a second line is cut", f"Instruction: {X}\n\nThis differs in three ways.")
    yield text("Windows line ends", f"Instruction: {X}\r\nNote: done")
    yield text("the same label twice with the same text", f"Instruction: {X}\n\nInstruction: {X}")
    yield text("a query", f"Query: {Q}", Q, QUERY)
    yield text("a query after a label of two words", f"New query: {Q}", Q, QUERY)
    yield text("a passage", f"Passage: {P}", P, PASSAGE)
    yield text("a passage of two paragraphs", f"Passage: {P2}", P2, PASSAGE)
    yield text("a passage under its label", f"Passage:\n{P2}", P2, PASSAGE)
    yield text(
        "a text with braces in it",
        f"Passage: Sets {{a, b}} matter. {P}",
        f"Sets {{a, b}} matter. {P}",
        PASSAGE,
    )
    yield Case("Azure, a label", INSTRUCTION, azure(f"Instruction: {X}"), want=X)
    yield Case("llama.cpp, a leading space", INSTRUCTION, llama_cpp(f" Instruction: {X}"), want=X)
    yield Case(
        "TGI, ends with eos_token", INSTRUCTION, tgi(f"Instruction: {X}", "eos_token"), want=X
    )
    yield Case("Anthropic, a label", QUERY, anthropic(f"Query: {Q}"), want=Q)
    yield Case("Gemini, a label", QUERY, gemini(f"Query: {Q}\n"), want=Q)
    for stop in (
        "<|im_end|>",
        "<|eot_id|>",
        "</s>",
        "<|endoftext|>",
        "<end_of_turn>",
        "<|end|>",
        "<｜end▁of▁sentence｜>",
    ):
        yield Case(
            f"llama.cpp, the stop token {stop} is left",
            INSTRUCTION,
            llama_cpp(f"Instruction: {X}{stop}"),
            want=X,
        )
    yield Case(
        "llama.cpp goes on with a turn of its own",
        INSTRUCTION,
        llama_cpp(f"Instruction: {X}<|im_end|>\n<|im_start|>user\nInstruction: and now?"),
        want=X,
    )
    code = dict(GIVEN) | {"language": "Python"}
    yield Case(
        "code in a fence after the label",
        PASSAGE,
        openai(f"Passage:\n{FENCE}python\n{CODE}\n{FENCE}"),
        want=CODE,
        given=code,
    )
    yield Case("code without a fence", PASSAGE, openai(f"Passage: {CODE}"), want=CODE, given=code)
    generic = "List<int> sizes = new List<int>();\nvar all = new Dictionary<string, List<int>>();"
    yield Case(
        "code with type parameters",
        PASSAGE,
        openai(f"Passage: {generic}"),
        want=generic,
        given=code,
    )
    fenced = dict(GIVEN) | {"document": f"Usage:\n{FENCE}\nrun\n{FENCE}\nThat is all."}
    text_with_fence = f"Call it so:\n{FENCE}\nstart\n{FENCE}\nThen wait."
    yield Case(
        "a fence where the document has fences",
        PASSAGE,
        openai(f"Passage: {text_with_fence}"),
        want=text_with_fence,
        given=fenced,
    )
    page = dict(GIVEN) | {"document": "The page holds <b>bold</b> words and <br> breaks."}
    tagged = "A page may hold <b>bold</b> words."
    yield Case(
        "tags where the document has tags",
        PASSAGE,
        openai(f"Passage: {tagged}"),
        want=tagged,
        given=page,
    )


def _reasoning() -> Iterator[Case]:
    good = dumped(instruction=X)
    yield Case(
        "vLLM Qwen3 without a parser",
        INSTRUCTION,
        vllm(f"<think>\nOkay, the user wants. {DRAFT}\n</think>\n\n{good}"),
        want=X,
    )
    yield Case(
        "vLLM Qwen3, thinking off", INSTRUCTION, vllm(f"<think>\n\n</think>\n\n{good}"), want=X
    )
    yield Case(
        "vLLM Qwen3, a draft at a line's start",
        INSTRUCTION,
        vllm(f"<think>\n{DRAFT}\n</think>\nInstruction: {X}"),
        want=X,
    )
    yield Case(
        "vLLM Qwen3 with its parser",
        INSTRUCTION,
        vllm(good, reasoning_content=f"Okay.\n{DRAFT}"),
        want=X,
    )
    yield Case("vLLM, newer field", INSTRUCTION, vllm(good, reasoning=f"{DRAFT}\n"), want=X)
    yield Case(
        "vLLM, an empty reasoning field", INSTRUCTION, vllm(good, reasoning_content=None), want=X
    )
    yield Case(
        "vLLM, the answer put into the reasoning",
        INSTRUCTION,
        vllm(None, reasoning_content=good),
        drop="empty",
    )
    yield Case(
        "vLLM R1 template: the opening tag is in the prompt",
        INSTRUCTION,
        vllm(f"Okay, so. {DRAFT}\n{DRAFT}\n</think>\n\nInstruction: {X}"),
        want=X,
    )
    yield Case(
        "vLLM R1 with JSON drafts",
        INSTRUCTION,
        vllm(f'Maybe {{"instruction": "a draft"}}.\n</think>\n{good}'),
        want=X,
    )
    yield Case(
        "a thought that names its own tag",
        INSTRUCTION,
        vllm(f"<think>I end with </think> and then {DRAFT}\n</think>\n{good}"),
        want=X,
    )
    yield Case(
        "thinking after the answer", INSTRUCTION, vllm(f"{good}\n<think>done</think>"), want=X
    )
    yield Case(
        "thinking that never ends",
        INSTRUCTION,
        vllm(f"<think>\n{DRAFT}\nInstruction: b"),
        drop="unparsable",
    )
    yield Case(
        "thinking cut by the limit",
        INSTRUCTION,
        vllm(f"<think>\n{DRAFT}", "length"),
        drop="cut_off",
    )
    yield Case(
        "nothing but thinking", INSTRUCTION, vllm(f"<think>\n{DRAFT}\n</think>\n\n"), drop="empty"
    )
    yield Case(
        "Ollama R1 in the content",
        QUERY,
        ollama(f"<think>\nQuery: a draft\n</think>\n\nQuery: {Q}"),
        want=Q,
    )
    yield Case(
        "Ollama, thinking in its field", QUERY, ollama(f"Query: {Q}", reasoning="Query: a"), want=Q
    )
    yield Case(
        "LM Studio, reasoning in its field",
        QUERY,
        lm_studio(dumped(query=Q), reasoning_content="Query: draft"),
        want=Q,
    )
    yield Case(
        "LM Studio, upper-case tags", QUERY, lm_studio(f"<THINK>Query: a</THINK>Query: {Q}"), want=Q
    )
    for tag in ("thinking", "thought", "reasoning", "analysis", "scratchpad", "reflection"):
        yield Case(
            f"<{tag}> around the draft",
            INSTRUCTION,
            openai(f"<{tag}>\n{DRAFT}\n</{tag}>\nInstruction: {X}"),
            want=X,
        )
    yield Case(
        "<reasoning> without an end",
        INSTRUCTION,
        openai(f"<reasoning>\n{DRAFT}\nInstruction: {X}"),
        drop="unparsable",
    )
    yield Case(
        "reasoning tag, then an answer tag",
        INSTRUCTION,
        openai(f"<reasoning>{DRAFT}</reasoning>\n<answer>Instruction: {X}</answer>"),
        want=X,
    )
    yield Case("Kimi's tags", INSTRUCTION, vllm(f"◁think▷{DRAFT}◁/think▷Instruction: {X}"), want=X)
    yield Case("Mistral's tags", INSTRUCTION, vllm(f"[THINK]{DRAFT}[/THINK]{good}"), want=X)
    yield Case("Mistral, parts", INSTRUCTION, mistral([thought(DRAFT), part(good)]), want=X)
    yield Case(
        "Mistral, text in two parts",
        INSTRUCTION,
        mistral(
            [
                thought(DRAFT),
                part("Instruction: Find texts that "),
                part("describe the tower before the great flood."),
            ]
        ),
        want=X,
    )
    yield Case(
        "Mistral, thinking alone", INSTRUCTION, mistral([thought(DRAFT)], "length"), drop="cut_off"
    )
    yield Case("Mistral, one part of text", PASSAGE, mistral([part(f"Passage: {P}")]), want=P)
    yield Case(
        "Anthropic, blocks of thinking",
        INSTRUCTION,
        anthropic([{"type": "thinking", "thinking": DRAFT}, part(good)]),
        want=X,
    )
    yield Case(
        "Gemini, thoughts in the content",
        INSTRUCTION,
        gemini(f"<thought>{DRAFT}</thought>{good}"),
        want=X,
    )
    yield Case(
        "harmony channels are left in",
        INSTRUCTION,
        llama_cpp(
            f"<|channel|>analysis<|message|>{DRAFT}\n{DRAFT}<|end|><|start|>assistant"
            f"<|channel|>final<|message|>Instruction: {X}<|return|>"
        ),
        want=X,
    )
    yield Case(
        "harmony, the final channel with a constraint",
        INSTRUCTION,
        llama_cpp(
            f"<|channel|>analysis<|message|>{DRAFT}<|end|><|start|>assistant<|channel|>"
            f"final <|constrain|>json<|message|>{good}"
        ),
        want=X,
    )
    yield Case(
        "harmony, the analysis channel alone",
        INSTRUCTION,
        ollama(f"<|channel|>analysis<|message|>{DRAFT}\nInstruction: maybe this"),
        drop="unparsable",
    )
    yield Case(
        "harmony, its markers dropped by the detokeniser",
        INSTRUCTION,
        vllm(f"analysisWe need one. {DRAFT}assistantfinalInstruction: {X}"),
        want=X,
    )
    yield Case(
        "harmony, commentary before the final",
        INSTRUCTION,
        lm_studio(
            f"<|channel|>commentary<|message|>{DRAFT}<|end|><|start|>assistant"
            f"<|channel|>final<|message|>{good}"
        ),
        want=X,
    )
    yield Case(
        "Gemma's channel",
        INSTRUCTION,
        llama_cpp(f"<|channel>thought\n{DRAFT}<channel|>{good}"),
        want=X,
    )
    yield Case(
        "Cohere's markers",
        INSTRUCTION,
        vllm(f"<|START_THINKING|>{DRAFT}<|END_THINKING|><|START_RESPONSE|>{good}<|END_RESPONSE|>"),
        want=X,
    )
    yield Case(
        "a details block",
        INSTRUCTION,
        openai(f'<details type="reasoning" done="true">\n{DRAFT}\n</details>\n{good}'),
        want=X,
    )
    yield Case(
        "a judge's thinking in its field",
        JUDGE,
        vllm("Choice: 2", reasoning_content="Choice: 1? No."),
        want="2",
    )
    yield Case(
        "a judge's thinking in tags",
        JUDGE,
        ollama("<think>Choice: 1\nor Choice: 3</think>\nChoice: 2"),
        want="2",
    )
    yield Case(
        "a judge that thinks to the limit",
        JUDGE,
        vllm("<think>Choice: 1", "length"),
        drop="unparsable",
    )


def _json() -> Iterator[Case]:
    good = dumped(instruction=X)

    def case(name: str, content: str, want: str | None = X, drop: str | None = None) -> Case:
        return Case(
            name, INSTRUCTION, openai(content), want=want if drop is None else None, drop=drop
        )

    yield case("JSON", good)
    yield case("JSON with white space", f"\n  {json.dumps({'instruction': X}, indent=2)}\n")
    yield case("JSON in a fence", f"{FENCE}json\n{good}\n{FENCE}")
    yield case("JSON in a fence on one line", f"{FENCE}json {good}{FENCE}")
    yield case("JSON in a fence without a language", f"{FENCE}\n{good}\n{FENCE}")
    yield case("a preface, then JSON", f"Here is the JSON you asked for:\n{good}")
    yield case("a preface, then JSON in a fence", f"Sure!\n\n{FENCE}json\n{good}\n{FENCE}")
    yield case("JSON, then a chat tail", f"{good}\n\nLet me know if you need anything else!")
    yield case("JSON in a fence, then notes", f"{FENCE}json\n{good}\n{FENCE}\n1. It differs.")
    yield case("an array of one", f"[{good}]")
    yield case("the same object twice", f"{good}\n{good}")
    yield case("a byte order mark", f"\ufeff{good}")
    yield case("a key in capitals", dumped(Instruction=X))
    yield case("a key of two words", dumped(new_instruction=X))
    yield case("an explanation beside it", dumped(instruction=X, explanation="It differs."))
    yield case("reasoning first", dumped(reasoning="The document turns on a year.", instruction=X))
    yield case("the label again in the value", dumped(instruction=f"Instruction: {X}"))
    yield case("a second line in the value", dumped(instruction=f"{X}\nAnd more."))
    yield case("quotes in the value", dumped(instruction=f'"{X}"'))
    yield Case(
        "a raw line break in a value",
        PASSAGE,
        llama_cpp('{"passage": "' + P2.replace("\n\n", "\n\n") + '"}'),
        want=P2,
    )
    yield Case("a passage as JSON", PASSAGE, azure(dumped(passage=P2)), want=P2)
    yield Case("a query as JSON", QUERY, tgi(dumped(query=Q)), want=Q)
    yield Case(
        "Gemini, JSON with an indent", QUERY, gemini(json.dumps({"query": Q}, indent=2)), want=Q
    )
    yield Case(
        "Anthropic, JSON after a sentence",
        QUERY,
        anthropic(f"I will write a query.\n\n{dumped(query=Q)}"),
        want=Q,
    )
    call = {"id": "c1", "type": "function", "function": {"name": "answer", "arguments": good}}
    yield Case(
        "a tool call in place of content",
        INSTRUCTION,
        openai(None, "tool_calls", tool_calls=[call]),
        want=X,
    )
    yield case(
        "two different objects", f"{good}\n{dumped(instruction='Another one.')}", drop="unparsable"
    )
    yield case(
        "a label and an object that differ", f"Instruction: Another one.\n{good}", drop="unparsable"
    )
    yield case("broken JSON", '{"instruction": "Find texts that', drop="unparsable")
    yield case("JSON without its end", good[:-1], drop="unparsable")
    yield case("the wrong key", dumped(query=X), drop="unparsable")
    yield case("no key", "{}", drop="unparsable")
    yield case("an unknown key beside it", dumped(instruction=X, more=1), drop="unparsable")
    yield case("a number as value", '{"instruction": 3}', drop="unparsable")
    yield case("a list as value", dumped(instruction=[X]), drop="unparsable")
    yield case("null as value", '{"instruction": null}', drop="unparsable")
    yield case("an empty value", '{"instruction": "  "}', drop="empty")
    yield case(
        "a key twice with two values",
        '{"instruction": "One.", "instruction": "Two."}',
        drop="unparsable",
    )
    yield case(
        "the schema instead of an answer",
        dumped(type="object", properties={"instruction": {"type": "string"}}),
        drop="unparsable",
    )
    yield case("JSON inside of JSON", dumped(instruction=good), drop="leftover")
    yield case("Python instead of JSON", "{'instruction': 'Find it.'}", drop="unparsable")


def _choices() -> Iterator[Case]:
    def judge(name: str, content: str, want: str | None = None, drop: str | None = None) -> Case:
        return Case(f"judge: {name}", JUDGE, openai(content), want=want, drop=drop)

    yield judge("a line", "Choice: 2", "2")
    yield judge("thinks aloud, then a line", "Passage 1 is old.\n\nChoice: 2", "2")
    yield judge("bold", "**Choice: 2**", "2")
    yield judge("bold label", "**Choice:** 2", "2")
    yield judge("brackets", "Choice: [2]", "2")
    yield judge("angle brackets", "Choice: <2>", "2")
    yield judge("the word passage", "Choice: Passage 2", "2")
    yield judge("a full stop", "Choice: 2.", "2")
    yield judge("an answer", "Answer: 2", "2")
    yield judge("a final answer", "Final answer: 2", "2")
    yield judge("a number alone", "2", "2")
    yield judge("a number alone in brackets", "[2]", "2")
    yield judge("a number alone in bold", "**2**", "2")
    yield judge("passage and number alone", "Passage 2.", "2")
    yield judge("a box", "So the answer is\n\n$\\boxed{2}$", "2")
    yield judge("none", "Choice: none", "none")
    yield judge("None in capitals alone", "NONE", "none")
    yield judge("ambiguous", "Choice: ambiguous", "ambiguous")
    yield judge("full-width digits", "Choice：２", "2")
    yield judge("Arabic digits", "Choice: ٢", "2")
    yield judge("a circled digit", "②", "2")
    yield judge("a leading zero", "Choice: 02", "2")
    yield judge("a reason on its line", "Choice: 2 (it names the year)", "2")
    yield judge("the same choice twice", "Choice: 2\n\n**Choice: 2**", "2")
    yield judge("changes its mind, ends with a line", "Choice: 1 is wrong\nso\nChoice: 2", "2")
    yield judge("a chat tail", "Choice: 2\n\nLet me know if you have questions.", "2")
    yield judge("JSON", dumped(reasoning="Choice: 1 is off.", choice="2"), "2")
    yield judge("JSON with a number", dumped(reasoning="", choice=2), "2")
    yield judge("JSON with a whole float", dumped(reasoning="", choice=2.0), "2")
    yield judge("JSON without reasoning", dumped(choice="2"), "2")
    yield judge("JSON with brackets", dumped(reasoning="", choice="[2]"), "2")
    yield judge("JSON with the word passage", dumped(choice="Passage 2"), "2")
    yield judge("JSON none", dumped(reasoning="", choice="none"), "none")
    yield judge("JSON None", dumped(reasoning="", choice="None"), "none")
    yield judge("JSON under answer", dumped(answer=2), "2")
    yield judge("JSON in a fence", f"{FENCE}json\n{dumped(choice='2')}\n{FENCE}", "2")
    yield judge("thinks aloud, then JSON", f"Passage 1 is off.\n{dumped(choice=2)}", "2")
    yield Case("judge: Gemini, a number and a line break", JUDGE, gemini("2\n"), want="2")
    yield Case("judge: TGI, JSON", JUDGE, tgi(dumped(reasoning="x", choice="2")), want="2")
    yield judge("two numbers", "Choice: 2 or 3", drop="unparsable")
    yield judge("a list of numbers", "Choice: 2, 3", drop="unparsable")
    yield judge("a range", "Choice: 2-3", drop="unparsable")
    yield judge("half a number", "Choice: 2.5", drop="unparsable")
    yield judge("a negative number", "-2", drop="unparsable")
    yield judge(
        "changes its mind in mid-text",
        "Choice: 2\nThen Choice: 3\nI am not sure",
        drop="unparsable",
    )
    yield judge("a sentence", "The second passage fits best.", drop="unparsable")
    yield judge("numbers in a sentence", "Passage 2 beats passage 3.", drop="unparsable")
    yield judge("out of range", "Choice: 9", drop="unknown_candidate")
    yield judge("zero", "Choice: 0", drop="unknown_candidate")
    yield judge("out of range in JSON", dumped(choice=9), drop="unknown_candidate")
    yield judge("thousands of digits", "Choice: " + "7" * 6000, drop="unknown_candidate")
    yield judge("JSON with half a number", dumped(choice=2.5), drop="unparsable")
    yield judge("JSON with true", '{"choice": true}', drop="unparsable")
    yield judge("JSON with a list", '{"choice": [2]}', drop="unparsable")
    yield judge("JSON with two numbers", dumped(choice="2 or 3"), drop="unparsable")
    yield judge("two JSON objects that differ", '{"choice": 1}\n{"choice": 2}', drop="unparsable")
    yield judge("nothing", "", drop="empty")
    yield judge("the form itself", "Choice: <number, none or ambiguous>", drop="unparsable")


def _leftovers() -> Iterator[Case]:
    def passage(name: str, text: str, drop: str = "leftover") -> Iterator[Case]:
        yield Case(f"passage: {name}", PASSAGE, openai(f"Passage: {text}"), drop=drop)
        yield Case(f"passage as JSON: {name}", PASSAGE, openai(dumped(passage=text)), drop=drop)

    def line(
        name: str, text: str, drop: str = "leftover", task: str = INSTRUCTION
    ) -> Iterator[Case]:
        label = "Query" if task == QUERY else "Instruction"
        yield Case(f"line: {name}", task, openai(f"{label}: {text}"), drop=drop)

    yield from passage("the end of an object", f'{P}"}}')
    yield from passage("a fence at the end", f"{P}\n{FENCE}")
    yield from passage("a tag at the end", f"{P}\n</passage>")
    yield from passage("a tag of a page", f"<p>{P}</p>")
    yield from passage("a special token inside", f"{P} <|assistant|> {P}")
    yield from passage("instruction markers", f"{P} [/INST] {P}")
    yield from passage("let me know", f"{P}\n\nLet me know if you need anything else!")
    yield from passage("let me know on the same line", f"{P} Let me know if you'd like changes.")
    yield from passage("hope this helps", f"{P}\n\nI hope this helps!")
    yield from passage("feel free", f"{P}\n\nFeel free to ask for another version.")
    yield from passage("would you like", f"{P}\n\nWould you like me to make it longer?")
    yield from passage("a note", f"{P}\n\nNote: The passage avoids the old instruction.")
    yield from passage("a bold note", f"{P}\n\n**Note:** I kept the length of the old passage.")
    yield from passage("a note in brackets", f"{P}\n\n(Word count: 118)")
    yield from passage("a preface", f"Certainly! {P}")
    yield from passage(
        "a preface that ends in a colon", f"Here is the passage you asked for:\n\n{P}"
    )
    yield from passage("as a model", f"As an AI language model, I can say this. {P}")
    yield from passage("the prompt is mentioned", f"{P} This meets the new instruction.")
    yield from passage("the query is mentioned", f"To answer the query, {P}")
    yield from passage("a label inside", f"{P}\n\nInstruction: Find the tower.")
    yield from passage("the dialogue goes on", f"{P}\n\nUser: And the bell?\nAssistant: It rings.")
    yield from passage("a rule of dashes", f"{P}\n\n---")
    yield from passage("written-out line breaks", P2.replace("\n", "\\n"))
    yield from passage(
        "the prompt's own words",
        f"{P} It answers the query and does everything that the instruction asks.",
    )
    yield from line("the end of an object", f'{X}"}}')
    yield from line("the end of an object after a quote", f'"{X}"}}')
    yield from line("a fence", f"{X} {FENCE}")
    yield from line("a tag", f"{X}</instruction>")
    yield from line("the form", "<your new instruction>")
    yield from line("the form in brackets", "[your new instruction]")
    yield from line("a place of the prompt", "{instruction_negative}")
    yield from line("an echo", "the new instruction")
    yield from line("an echo of the schema", "The instruction alone, in one line, without a label.")
    yield from line("an echo of one word", "query", task=QUERY)
    yield from line("an echo in quotes", '"new query"', task=QUERY)
    yield from line("a numbered note", "1. The document turns on the year 1850.")
    yield from line("a dash note", "- The year of building")
    yield from line("talks of the new instruction", "The new instruction should ask for the bell.")
    yield from line("one bold mark", f"**{X}")
    yield from line("a chat tail", f"{X} Let me know if you need anything else!")
    yield from line("three dots", "...")
    yield from line("a query with a chat tail", f"{Q}? I hope this helps!", task=QUERY)
    yield Case(
        "a draft of a fence, as it was stored once",
        INSTRUCTION,
        openai(f'{FENCE}json {{"instruction": "{X}"'),
        drop="unparsable",
    )
    yield Case(
        "two labels that differ",
        INSTRUCTION,
        openai(f"Instruction: I only want the year.\nNew instruction: {X}"),
        drop="unparsable",
    )
    yield Case(
        "code, then words about it",
        PASSAGE,
        openai(f"Passage:\n{FENCE}python\n{CODE}\n{FENCE}\n\nThis takes another approach."),
        drop="leftover",
        given=dict(GIVEN) | {"language": "Python"},
    )


def _debris() -> Iterator[Case]:
    """What stayed in texts when the parser was attacked a second time."""
    unwrapped = (f"`{X}`", f"*{X}*", f"_{X}_", f"'{X}'", f"{X}\u200b", f"‘{X}’", f"«{X}»")
    for number, text in enumerate(unwrapped):
        name = f"marks around an instruction, {number}"
        yield Case(name, INSTRUCTION, tgi(f"Instruction: {text}"), want=X)
    lines = (
        *(f'{X}"', f'"{X}', f"{X}”", f'{X}",', f"{X}}}", f"{X}]"),
        *(f"I-: {X}", f"I+: {X}", f"Negative instruction: {X}", f"(new) {X}"),
        *("A new, contradictory instruction", "an opposite instruction"),
        f"{X} (This contradicts the original focus on years.)",
        f"{X} [Revised to exclude dates]",
        f"{X} - opposite of the positive instruction",
        f"{X} Explanation: this contradicts it.",
        f"{X} Thank you!",
        f"{X} Is this what you wanted?",
    )
    for text in lines:
        yield Case(
            f"debris: {text.replace(X, '…')}",
            INSTRUCTION,
            lm_studio(f"Instruction: {text}"),
            drop="leftover",
        )
    for text in (f"Q-: {Q}", f"New search query: {Q}", f"{Q} (different from the original)"):
        yield Case(
            f"debris: {text.replace(Q, '…')}", QUERY, mistral(f"Query: {text}"), drop="leftover"
        )
    heads = ("Sure thing! ", "Here you go: ", "Here's the rewritten article:\n", "Document: ")
    tails = (
        *("\n\nIs there something specific you'd like me to modify?", " Let me know!"),
        *("\n\nWould you like any changes?", "\n\nHope that's what you wanted!"),
        *("\n\nFeel free to tweak it as you like.", "\n\nTHE END", "\n[End]", "\n\nP1-"),
        "\n\nI've kept the length and style similar to the document.",
        "\n\nThis version focuses on the bell instead of the year.",
        "\n\nThis response meets the requirements.",
        "\n\nPassage written as requested.",
        "\n\nAs requested, this differs from the document.",
        *("\n\n(45 words)", "\n(Words: 45)", "\n\n### Explanation\nIt turns on the bell."),
        *("\n\n**Why it works**\nIt turns on the bell.", " &lt;b&gt;"),
        "\n\nNote that all facts are invented.",
    )
    for text in [*(head + P for head in heads), *(P + tail for tail in tails)]:
        yield Case(
            f"debris: {text.replace(P, '…').strip()[:60]!r}",
            PASSAGE,
            ollama(f"Passage: {text}"),
            drop="leftover",
        )
    ambiguous = (
        *("Answer: 1 is wrong, 3 fits.", "Is the answer: 2? No.\nI cannot decide."),
        *("Choice: 2 (but 3 also fits)", "My choice is 2, since answer is 3"),
        *("Choice: 2?", "Choice: 1. No, choice: 4", "The answer is 2 or maybe another one."),
    )
    for text in ambiguous:
        yield Case(f"not one choice: {text!r}", JUDGE, llama_cpp(text), drop="unparsable")
    clear = (
        *("Choice: 2 (it alone names the year)", "**Answer:** 2, because it names the year."),
        *("Choice: 2 – the others are about the bell.", "Answer: 2. It names the year."),
        *("Choice: 2 (passage 3 does not name the year)",),
    )
    for text in clear:
        yield Case(f"one choice with its reason: {text!r}", JUDGE, openai(text), want="2")
    yield from _third_attack()
    kept = f'{P} He said: "Ring it." A board 12" wide hangs there (I\'ve kept a picture of it).'
    yield Case("quotes that belong to a passage", PASSAGE, openai(f"Passage: {kept}"), want=kept)
    for text in (
        "Find texts in which 'tower' means a keep.",
        "Nothing about the *old* church, please.",
        'Only what locals call "the keep"',
        "Skip the end of the story; I want the building of it.",
    ):
        yield Case(f"a clean line: {text}", INSTRUCTION, vllm(f"Instruction: {text}"), want=text)


def _third_attack() -> Iterator[Case]:
    """What stayed, or was read wrongly, when it was attacked a third time."""
    lines = (
        *(f"{X} (new instruction)", f"New instruction - {X}", f"I+ {X}", f"{X} // negative"),
        *(f"{X} *This contradicts the year.*", f"{X} Does this work for you?"),
        *(f"{X} Happy to revise.", f"{X} Would that work?"),
    )
    for text in lines:
        name = f"debris again: {text.replace(X, '…')}"
        yield Case(name, INSTRUCTION, openai(f"Instruction: {text}"), drop="leftover")
    yield Case(
        "debris again: a negative query",
        QUERY,
        tgi(f"Query: {Q} — a negative query"),
        drop="leftover",
    )
    tails = (
        *("I hope this meets your requirements.", "Rewritten to omit the year."),
        *("Please note I avoided figures.", "Feel free to tell me what you'd like changed."),
        *("**Analysis:** it misses the year", "The passage above does not mention years."),
        *("This text does not mention years, per the requirements.", "Will it do?"),
        *("Stop generating", "</p"),
    )
    for tail in tails:
        yield Case(
            f"debris again: … {tail}", PASSAGE, vllm(f"Passage: {P}\n\n{tail}"), drop="leftover"
        )
    for text in (
        f"<reflect>\n{DRAFT}</reflect>\nDone",
        f"**Thinking**\n{DRAFT}\n\n**Final**\n{X}",
        f"Draft:\n{DRAFT}\nRevised version: {X}",
    ):
        yield Case(
            f"a draft and no answer: {text!r:.40}", INSTRUCTION, ollama(text), drop="unparsable"
        )
    yield Case(
        "a tag for reflecting, then the answer",
        INSTRUCTION,
        ollama(f"<reflect>{DRAFT}</reflect>\nInstruction: {X}"),
        want=X,
    )
    parts = [{"type": "text", "text": "Draft one."}, {"type": "text", "text": f"Instruction: {X}"}]
    yield Case("two parts of text", INSTRUCTION, openai(parts), want=X)
    thinking = {"type": "text", "text": "Instruction: a draft.", "thought": True}
    yield Case("a part marked as a thought", INSTRUCTION, gemini([thinking, parts[1]]), want=X)
    for text in (
        "Choice: 2. Actually, 3.",
        "Choice: 2.\nWait, on reflection it should be 3.",
        "Choice: 2, though 3 is better",
    ):
        yield Case(f"a choice taken back: {text!r}", JUDGE, openai(text), drop="unparsable")
    for text in (
        "Choice: 2. Actually the only one that names the year.",
        "Choice: 2\nThough short, it should be enough: it names the year.",
        "Choice: 2, though only passage 2 is short.",
    ):
        yield Case(f"a choice with its reason: {text!r}", JUDGE, openai(text), want="2")
    for text in (
        "What is this passage of the river called and who named it?",
        "Find texts about a rewritten constitution, not the new one.",
        "Find texts in which a ship's captain stops a negative rumour.",
    ):
        yield Case(
            f"a clean line again: {text}", INSTRUCTION, vllm(f"Instruction: {text}"), want=text
        )
    clean = f"{P} This passage through the hills never closed. The text above the door is worn."
    yield Case("a passage about a passage", PASSAGE, openai(f"Passage: {clean}"), want=clean)


def _bodies() -> Iterator[Case]:
    good = f"Instruction: {X}"
    yield Case(
        "a refusal in its field",
        INSTRUCTION,
        openai(None, refusal="I cannot help."),
        drop="refused",
    )
    yield Case(
        "a refusal in words",
        INSTRUCTION,
        openai("I'm sorry, but I can't help with that."),
        drop="refused",
    )
    yield Case(
        "a refusal as the text",
        INSTRUCTION,
        openai(dumped(instruction="I cannot assist with that request.")),
        drop="refused",
    )
    yield Case("Azure's filter", INSTRUCTION, azure(None, "content_filter"), drop="refused")
    yield Case("Gemini's filter", INSTRUCTION, gemini(None, "content_filter"), drop="refused")
    yield Case(
        "Gemini, all of the limit spent on thoughts",
        INSTRUCTION,
        gemini(None, "length"),
        drop="cut_off",
    )
    yield Case(
        "OpenAI, all of the limit spent on thoughts",
        INSTRUCTION,
        openai("", "length"),
        drop="cut_off",
    )
    yield Case("Mistral, model_length", INSTRUCTION, mistral(good, "model_length"), drop="cut_off")
    yield Case("max_tokens", INSTRUCTION, anthropic(good, "max_tokens"), drop="cut_off")
    yield Case("empty content", INSTRUCTION, openai(""), drop="empty")
    yield Case("no content", INSTRUCTION, openai(None), drop="empty")
    yield Case("white space", INSTRUCTION, openai(" \n"), drop="empty")
    yield Case("no choice", INSTRUCTION, openai("") | {"choices": []}, drop="empty")
    yield Case("content as a number", JUDGE, llama_cpp(2), want="2")
    yield Case("content as an object", INSTRUCTION, llama_cpp({"instruction": X}), want=X)
    yield Case(
        "content as parts of an unknown kind",
        INSTRUCTION,
        openai([{"type": "image_url", "image_url": {"url": "data:"}}]),
        drop="empty",
    )
    yield Case("content as a list of texts", INSTRUCTION, openai([good]), want=X)
    yield Case(
        "parts called output_text",
        INSTRUCTION,
        openai([{"type": "output_text", "text": good}]),
        want=X,
    )
    usages: dict[str, Any] = {
        "tokens as floats": {"prompt_tokens": 12.0, "completion_tokens": 3.0},
        "tokens as strings": {"prompt_tokens": "12", "completion_tokens": "3"},
        "tokens missing": {},
        "tokens null": {"prompt_tokens": None, "completion_tokens": None},
        "tokens negative": {"prompt_tokens": -1, "completion_tokens": -1},
        "usage null": None,
        "usage as a list": [],
        "details as a number": USAGE | {"completion_tokens_details": 3},
        "tokens not a number": {"prompt_tokens": "many", "completion_tokens": "NaN"},
        "tokens beyond all bounds": {"prompt_tokens": 1e400, "completion_tokens": 10**30},
    }
    for name, usage in usages.items():
        yield Case(name, INSTRUCTION, openai(good) | {"usage": usage}, want=X)
    without = openai(good)
    del without["usage"]
    yield Case("no usage", INSTRUCTION, without, want=X)
    twice = openai(good)
    twice["choices"] = [*twice["choices"], *openai("Instruction: Another.")["choices"]]
    yield Case("two choices: the first", INSTRUCTION, twice, want=X)
    legacy = openai("") | {"choices": [{"index": 0, "text": good, "finish_reason": "stop"}]}
    yield Case("text instead of a message", INSTRUCTION, legacy, want=X)
    yield Case("no finish reason", INSTRUCTION, openai(good, None), want=X)  # type: ignore[arg-type]
    yield Case(
        "a NUL in the text", INSTRUCTION, openai(f"Instruction: a\x00b {X}"), drop="unparsable"
    )
