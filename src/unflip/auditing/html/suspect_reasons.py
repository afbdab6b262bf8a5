"""Why each of the first suspects is suspect, for the page: inputs, and similar rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from unflip._utils.typing import IntArray
from unflip.auditing.explanation import Explainer
from unflip.auditing.reasons import Contributions

#: Suspects whose inputs are explained: about 0.2 kB of the page for each. A choice.
MOST_EXPLAINED = 1000
#: Suspects with similar rows: among 10,000 rows of 500 features, the search takes as long as one
#: Gram matrix with its eigendecomposition.
MOST_COMPARED = 250
_N_TOWARDS = 5  # inputs shown that favour the proposed class
_N_AGAINST = 2  # inputs shown that favour the observed class


def suspect_reasons(explainer: Explainer, suspects: IntArray) -> dict[str, Any]:
    """Return inputs and similar rows of the first suspects.

    Parameters
    ----------
    explainer : Explainer
        Explains rows of the audit.
    suspects : ndarray of shape (m,)
        Rows of the suspects, in the order of the list.

    Returns
    -------
    dict
        ``names`` of inputs, ``inputs`` of each suspect as pairs of a name's place and a share,
        ``nearest`` rows of each suspect, and a ``note`` if there are no inputs.
    """
    explained = suspects[:MOST_EXPLAINED]
    note = explainer.rows.why_no_inputs
    inputs = list(_inputs(explainer, explained)) if explainer.rows.has_names and not note else []
    used = sorted({name for line in inputs for name, _ in line})
    places = {name: place for place, name in enumerate(used)}
    nearest = explainer.nearest(suspects[:MOST_COMPARED])
    return {
        "names": used,
        "inputs": [[[places[name], share] for name, share in line] for line in inputs],
        "nearest": [[row for row in line if row >= 0] for line in nearest.rows.tolist()],
        "note": note,
    }


def _inputs(explainer: Explainer, rows: IntArray) -> Iterator[list[tuple[str, float]]]:
    """Yield names and shares of the main inputs of each row, the largest share first."""
    names = explainer.rows.input_names
    pairs = np.column_stack([explainer.proposed(rows), explainer.evidence.codes[rows]])
    lines: dict[int, list[tuple[str, float]]] = {}
    for toward, against in np.unique(pairs, axis=0).tolist():
        places = np.flatnonzero((pairs == (toward, against)).all(axis=1))
        contributions = explainer.rows.contributions(rows[places], toward, against)
        for number, place in enumerate(places.tolist()):
            lines[place] = [
                (str(names[j]), share) for j, share in _main_shares(contributions, number)
            ]
    yield from (lines[place] for place in range(len(rows)))


def _main_shares(contributions: Contributions, number: int) -> list[tuple[int, float]]:
    """Return the main inputs of a row, with their signed shares in all contributions."""
    values = contributions.of_row(number)
    total = float(np.abs(values).sum())
    order = np.argsort(-values, kind="stable")
    chosen = dict.fromkeys([*order[:_N_TOWARDS].tolist(), *order[-_N_AGAINST:].tolist()])
    towards = [j for j in chosen if values[j] > 0]
    against = [j for j in chosen if values[j] < 0]
    shares = {j: float(values[j]) / total for j in [*towards[:_N_TOWARDS], *against[-_N_AGAINST:]]}
    return [(j, round(share, 4)) for j, share in shares.items()]
