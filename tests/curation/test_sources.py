"""Published collections, awkward rows included, as pairs and passages."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from curation.sources.converting import write_files
from curation.sources.msmarco import read_msmarco
from curation.sources.problems import read_leetcode, read_math
from curation.sources.rows import LeftOut, SourcePair, SourcePassage, without_tags
from curation.sources.trec import read_topics, read_trec

MSMARCO = [
    {
        "query": "what is rba ",
        "query_id": 19699,
        "query_type": "DESCRIPTION",
        "answers": ["Results-Based Accountability"],
        "passages": {
            "is_selected": [0, 1, 1],
            "passage_text": ["Not this.", "RBA is a way of thinking.", "Nor this."],
            "url": ["http://a", "http://b", "http://c"],
        },
        "wellFormedAnswers": [],
    },
    {
        "query": "no luck",
        "query_id": 2,
        "query_type": "NUMERIC",
        "answers": ["No Answer Present."],
        "passages": {"is_selected": [0], "passage_text": ["Not this."], "url": ["http://a"]},
        "wellFormedAnswers": [],
    },
    {
        "query": "empty answers",
        "query_id": 3,
        "query_type": "ENTITY",
        "answers": [],
        "passages": {"is_selected": [1], "passage_text": ["It is here."], "url": ["http://d"]},
        "wellFormedAnswers": [],
    },
]


def pairs_of(found: list[Any]) -> list[SourcePair]:
    return [one for one in found if isinstance(one, SourcePair)]


def left_out(found: list[Any]) -> list[str]:
    return [one.reason for one in found if isinstance(one, LeftOut)]


def test_msmarco_takes_the_first_selected_passage_and_says_why_a_row_gives_no_pair(
    tmp_path: Path,
) -> None:
    pq.write_table(pa.Table.from_pylist(MSMARCO), tmp_path / "train.parquet")
    found = list(read_msmarco(str(tmp_path / "train.parquet")))
    first, second = pairs_of(found)
    texts = {one.passage_id: one.text for one in found if isinstance(one, SourcePassage)}
    assert (first.query_id, first.query) == ("msmarco-19699", "what is rba")
    assert texts[first.passage_id] == "RBA is a way of thinking."
    assert first.meta == {"query_type": "DESCRIPTION", "answers": ["Results-Based Accountability"]}
    assert second.meta["answers"] == []
    assert left_out(found) == ["no passage is selected"]


def test_msmarco_rows_without_flags_are_left_out(tmp_path: Path) -> None:
    rows = [
        {"query": "a", "query_id": 1, "passages": {"passage_text": ["x"]}},
        {"query": "b", "query_id": 2, "passages": {"passage_text": ["x"], "is_selected": []}},
        {"query": " ", "query_id": 3, "passages": []},
        {"query": "c", "query_id": 4, "passages": [{"passage_text": "y", "is_selected": 1}]},
    ]
    path = tmp_path / "dev.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)) + "\nnot json\n")
    found = list(read_msmarco(str(path)))
    assert [pair.query for pair in pairs_of(found)] == ["c"]
    assert len(left_out(found)) == 4


TOPICS = """
<top>

<num> Number: 301
<title> International Organized Crime

<desc> Description:
Identify <b>organizations</b> that participate in
international criminal activity &amp; the activity.

<narr> Narrative:
A relevant document must name the organization.

</top>
<top>
<num> Number: 302 <title>
<desc> Description:
No title here.
<narr> Narrative:
</top>
"""
DOCUMENTS = """<DOC>
<DOCNO> FT911-1 </DOCNO>
<HEADLINE>FT 14 MAY 91 / Gangs</HEADLINE>
<TEXT>
<P>A gang &lt;of five&gt; was named.</P>
<P>It crossed borders.</P>
</TEXT>
</DOC>
<DOC>
<DOCNO>FT911-2</DOCNO>
<TEXT>
</TEXT>
</DOC>
<DOC>
<TEXT>nameless</TEXT>
</DOC>
<DOC><DOCNO>FT911-3</DOCNO><TEXT>Something else.</TEXT></DOC>
"""
QRELS = "301 0 FT911-1 2\n301 0 FT911-3 0\n301 0 FT911-9 1\n302 0 FT911-3 1\nbroken\n"


def test_trec_topics_documents_and_qrels_become_pairs(tmp_path: Path) -> None:
    (tmp_path / "topics.txt").write_text(TOPICS)
    with gzip.open(tmp_path / "ft.gz", "wt") as file:
        file.write(DOCUMENTS)
    (tmp_path / "qrels").write_text(QRELS)
    found = list(read_trec(tmp_path / "topics.txt", [tmp_path / "ft.gz"], tmp_path / "qrels"))
    (pair,) = pairs_of(found)
    assert (pair.query_id, pair.query) == ("301-FT911-1", "International Organized Crime")
    assert pair.meta["description"] == (
        "Identify organizations that participate in international criminal activity & the activity."
    )
    passages = [one for one in found if isinstance(one, SourcePassage)]
    assert [one.passage_id for one in passages] == ["FT911-1", "FT911-3"]
    assert passages[0].text == "A gang <of five> was named.\n\nIt crossed borders."
    assert passages[0].title == "FT 14 MAY 91 / Gangs"
    assert sorted(left_out(found)) == [
        "a document without DOCNO",
        "document FT911-2 has no text",
        "document FT911-9 is not among the documents",
        "no topic 302 with a title",
        "not `topic iteration document grade`",
    ]


def test_the_real_topics_are_read(real_data: Path) -> None:
    topics = dict(read_topics(real_data / "trec_topics" / "core18.jsonl"))
    assert topics["321"]["title"] == "Women in Parliaments"
    assert not topics["321"]["narrative"].startswith("Narrative")


def test_leetcode_gives_a_pair_for_each_language_without_the_talk(tmp_path: Path) -> None:
    row = {
        "id": 1,
        "slug": "two-sum",
        "title": "Two Sum",
        "difficulty": "Easy",
        "content": "<p>Given <code>nums</code>,&nbsp;add.</p>\n<ul>\n<li>1 &lt; n</li>\n</ul>",
        "java": "Here is it:\n```java\nclass S {}\n```\nIt is O(n).",
        "c++": "",
        "python": "def f():\n    return 1\n",
        "javascript": None,
    }
    bare = {"title": "Nothing", "content": "<p>Task</p>", "python": ""}
    path = tmp_path / "leetcode.jsonl"
    path.write_text(json.dumps(row) + "\n" + json.dumps(bare) + "\n")
    found = list(read_leetcode(path))
    assert [(pair.query_id, pair.meta["language"]) for pair in pairs_of(found)] == [
        ("1-Java", "Java"),
        ("1-Python", "Python"),
    ]
    assert pairs_of(found)[0].query == "Given nums, add.\n\n1 < n"
    texts = [one.text for one in found if isinstance(one, SourcePassage)]
    assert texts == ["class S {}", "def f():\n    return 1"]
    assert left_out(found) == ["no solution whose language is known"]


def test_math_problems_come_with_their_solutions_without_calculator_marks(tmp_path: Path) -> None:
    rows = [
        {"query": "How much?", "response": "The answer is: 4", "type": "MATH_AnsAug"},
        {"question": "How many?", "answer": "16 - 3 = <<16-3=13>>13\n#### 13"},
        {"question": "And?", "answer": " "},
    ]
    path = tmp_path / "math.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    found = list(read_math(path))
    texts = [one.text for one in found if isinstance(one, SourcePassage)]
    assert texts == ["The answer is: 4", "16 - 3 = 13\n#### 13"]
    assert left_out(found) == ["no solution"]


def test_tags_go_and_what_only_looks_like_one_stays() -> None:
    assert without_tags("a < b and c > d &amp; <i>e</i><br>f") == "a < b and c > d & e\nf"


def test_real_problems_are_converted_and_imported(
    real_data: Path, tmp_path: Path, sqlite_store: Any, inf: Callable[..., Any]
) -> None:
    folder = real_data / "code_math"
    done = write_files(read_leetcode(folder / "mbpp_pairs.jsonl"), tmp_path / "m", limit=None)
    assert done.pairs == 474 and not done.left_out
    out = tmp_path / "gsm"
    found = inf("convert", "math", folder / "gsm8k_pairs.jsonl", "--out", out, "--json").json
    assert found["pairs"] == 600
    words = ("--pairs", found["pairs_path"], "--passages", found["passages_path"])
    assert inf("import", "--dataset", "gsm8k", *words, "--json").json["imported"] == 600
