"""Linear classifiers from noisy labels in high dimension."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unflip import datasets, estimation, losses, targets, theory
    from unflip.auditing import Audit, audit, audit_scores
    from unflip.classifier import LPClassifier
    from unflip.moments import Moments
    from unflip.noise import NoiseModel
    from unflip.votes import Votes

__all__ = [
    "Audit",
    "LPClassifier",
    "Moments",
    "NoiseModel",
    "Votes",
    "audit",
    "audit_scores",
    "datasets",
    "estimation",
    "losses",
    "targets",
    "theory",
]
__version__ = "0.1.0"

_MODULE_OF = {
    "Audit": "auditing",
    "LPClassifier": "classifier",
    "Moments": "moments",
    "NoiseModel": "noise",
    "Votes": "votes",
    "audit": "auditing",
    "audit_scores": "auditing",
}

if not TYPE_CHECKING:  # or every misspelt name would pass for one that is found later

    def __getattr__(name):
        """Import a public name when it is first asked for (PEP 562): theory need not wait for scikit-learn."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        if name not in _MODULE_OF:
            return import_module(f"{__name__}.{name}")
        value = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
