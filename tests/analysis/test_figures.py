import plotly.graph_objects as go
import pytest

from analysis.agreement.agreement import Decision, agreement_report
from analysis.figures.figures import diversity_bars, human_model_bars
from analysis.found.texts import CorpusDiversity, FieldNumbers

DECISIONS = [
    Decision(item, judge, label, "model" if judge == "gpt" else "person")
    for judge, labels in {"ann": "abab", "bob": "abba", "gpt": "abab", "dan": "aaaa"}.items()
    for item, label in enumerate(labels * 3)
]


def note(figure: go.Figure) -> str:
    return str(figure.layout.annotations[0].text).replace("<br>", " ")


def test_an_undefined_mean_is_left_out_with_its_reason() -> None:
    report = agreement_report([Decision(1, "ann", "a"), Decision(2, "<b>", "a")])
    figure = human_model_bars(report)
    assert list(figure.data[0].y) == []
    assert "no items in common" in note(figure)


def test_figure_four_has_a_bar_per_model_and_one_for_the_people() -> None:
    (bars,) = human_model_bars(agreement_report(DECISIONS)).data
    assert list(bars.x) == ["people among themselves", "gpt"]
    # with ann, bob and dan: p_o (1 + 2/3 + 2/3 + 1/3)/4 = 2/3, p_e 1/2 (gpt says a half the time)
    assert bars.y[1] == pytest.approx(1 / 3)


def test_no_judgments_give_an_empty_figure_and_no_error() -> None:
    report = agreement_report([])
    assert "fewer than two people" in note(human_model_bars(report))


def test_diversity_leaves_an_undefined_bar_out_and_says_why() -> None:
    none = dict.fromkeys(("mean_words", "ingf_2", "ingf_3"))
    corpora = [
        CorpusDiversity(
            corpus=name,
            offline=False,
            fields={"query": FieldNumbers(texts=1, different=1, aps=aps, reason=reason, **none)},
        )
        for name, aps, reason in (
            ("one", 0.2, {}),
            ("two", None, {"aps": "fewer than two texts"}),
        )
    ]
    figure = diversity_bars(corpora, "aps")
    assert [bar.y[0] for bar in figure.data] == [0.2, None]
    assert "two, query: fewer than two texts" in note(figure)
