"""The equation of an objective, as the Train page shows it."""

from trainer.objectives.names import Objective


def equation(objective: Objective) -> str:
    """The LaTeX of an objective: Eq. 6 (uni) or Eq. 7 (multi) with its terms, or a baseline's."""
    terms = r"\{" + ",".join(objective.terms) + r"\}"
    up = r"e^{s^+/\tau}"
    if objective.baseline:
        negatives = rf"\sum_{{{objective.baseline.negatives}}} e^{{s_{{P}}/\tau}}"
        return (
            rf"\ell_{{\text{{{objective.baseline.symbol}}}}}=-\log\frac{{{up}}}{{{up}+{negatives}}}"
        )
    if len(objective.terms) == 1:
        term = objective.terms[0]
        negatives = rf"\sum_{{n\in\mathcal N_{{{term}}}}} e^{{s_n/\tau}}"
        return rf"\ell_{{{term}}}=-\log\frac{{{up}}}{{{up}+{negatives}}}"
    negatives = r"\sum_{n\in\mathcal N_y} e^{s_n/\tau}"
    name = rf"\ell_{{{','.join(objective.terms)}}}"
    if objective.mode == "uni":
        return rf"{name}^{{uni}}=-\sum_{{y\in{terms}}}\log\frac{{{up}}}{{{up}+{negatives}}}"
    return rf"{name}^{{multi}}=-\log\frac{{{up}}}{{{up}+\sum_{{y\in{terms}}}{negatives}}}"
