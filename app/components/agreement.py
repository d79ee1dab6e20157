"""An agreement report as numbers and tables; what is undefined says why."""

from typing import Any

import streamlit as st

from app.components.plain import plain

KAPPA = st.column_config.NumberColumn(format="%.4f")


def draw_report(report: dict[str, Any]) -> None:
    """Means, judges, pairs."""
    if report["simulated"]:
        st.warning(
            "The people of this study are simulated judges: a demonstration, no evidence.",
            icon=":material/smart_toy:",
        )
    means = [("People with people", report["human_human"])]
    means += [(f"People with {name}", mean) for name, mean in report["human_model"].items()]
    with st.container(horizontal=True):
        for label, mean in means:
            draw_mean(label, mean)
    st.caption(f"{report['judgments']:,} judgments of {report['items']:,} items")
    draw_pairs(report["pairs"])


def draw_mean(label: str, mean: dict[str, Any]) -> None:
    """Mean kappa over the pairs where it is defined."""
    with st.container(border=True, width=260):
        kappa = mean["kappa"]
        st.metric(label, "undefined" if kappa is None else f"{kappa:.3f}")
        if kappa is None:
            st.caption(plain(mean["reason"]))
        else:
            undefined = mean["undefined_pairs"]
            rest = f", {undefined} undefined" if undefined else ""
            agreement = f"raw agreement {mean['agreement']:.1%} · " if mean["agreement"] else ""
            st.caption(f"{agreement}{mean['pairs']} pairs{rest}")


def draw_pairs(pairs: list[dict[str, Any]]) -> None:
    """A row per pair of judges."""
    st.subheader("Pairs of judges", anchor=False)
    rows = [
        {
            "Judge": pair["judge_a"],
            "With": pair["judge_b"],
            "Kappa": pair["kappa"],
            "± standard error": pair["standard_error"],
            "Raw agreement": pair["agreement"],
            "Items": pair["items"],
            "Undefined because": pair.get("reason", ""),
        }
        for pair in pairs
    ]
    columns = dict.fromkeys(("Kappa", "± standard error", "Raw agreement"), KAPPA)
    if not any(pair.get("reason") for pair in pairs):
        columns["Undefined because"] = None  # type: ignore[assignment]
    st.dataframe(
        rows or [{"Judge": "fewer than two judges"}], hide_index=True, column_config=columns
    )
