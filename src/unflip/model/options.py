"""The parameters of `LPClassifier`: validation, and what follows from them alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import get_tags

from unflip import losses
from unflip import targets as target_values
from unflip._utils.validation import as_number, check_choice, shown
from unflip.estimation.noise_estimator import NoiseEstimator
from unflip.features.kernels import KERNELS
from unflip.labels.class_values import noise_in_order, priors_in_order
from unflip.labels.noise import NoiseModel

#: Names that `features=` accepts.
FEATURES = ("linear", "auto", *KERNELS)


def gives_priors(noise: object, priors: object) -> bool:
    """Whether `noise=` and `priors=` set the class priors, rather than leave them to the labels."""
    has_priors = isinstance(noise, NoiseModel | NoiseEstimator) and noise.priors is not None
    return priors is not None or has_priors


def is_linear(features: object) -> bool:
    """Whether the parameter `features=` is "linear"."""
    return isinstance(features, str) and features == "linear"


def is_estimate(noise: object) -> bool:
    """Whether the parameter `noise=` is "estimate"."""
    return isinstance(noise, str) and noise == "estimate"


@dataclass(frozen=True, eq=False)
class Options:
    """Parameters of `LPClassifier`, as given."""

    noise: Any
    priors: Any
    targets: Any
    readout: str
    reg: Any
    loss: Any
    fit_intercept: bool
    features: Any
    deployment_priors: Any
    costs: Any

    def check(self) -> None:
        """Raise ValueError if a parameter is invalid or contradicts another."""
        check_choice(self.readout, ("gaussian", "plain"), "readout")
        if isinstance(self.targets, str) and self.targets not in ("refined", *target_values.NAMED):
            choices = ", ".join(map(repr, ("refined", *target_values.NAMED)))
            raise ValueError(
                f"targets={self.targets!r} is not a valid value: use {choices}, the values (t_neg, "
                "t_pos), or an array."
            )
        losses.resolve(self.loss)
        if isinstance(self.reg, str):
            if self.reg not in ("loo", "theory"):
                raise ValueError(
                    f"reg={self.reg!r} is not a valid value: use 'loo', 'theory' or a number γ ≥ 0."
                )
        elif (
            isinstance(self.reg, bool)
            or self.reg is None
            or not 0 <= as_number(self.reg, "reg") < np.inf
        ):
            raise ValueError(f"reg={self.reg!r} must be 'loo', 'theory' or a finite number γ ≥ 0.")
        if self.readout == "plain" and not (self.deployment_priors is None and self.costs is None):
            raise ValueError(
                "deployment_priors and costs move the threshold, but readout='plain' keeps it at "
                "0: use readout='gaussian'."
            )
        if not isinstance(self.fit_intercept, bool | np.bool_):
            raise ValueError(f"fit_intercept={self.fit_intercept!r} must be True or False.")
        _check_features(self.features)

    def for_classes(self, classes: NDArray[Any]) -> Options:
        """Return the parameters with values by class in the order of the classes."""
        deployed = priors_in_order(self.deployment_priors, classes, "deployment_priors")
        return replace(
            self,
            noise=noise_in_order(self.noise, classes),
            priors=priors_in_order(self.priors, classes),
            deployment_priors=deployed,
        )

    @property
    def priors_known(self) -> bool:
        """Whether the class priors are given, rather than inferred from the labels."""
        return gives_priors(self.noise, self.priors)

    @property
    def refines(self) -> bool:
        """Whether each row gets its own target."""
        return isinstance(self.targets, str) and self.targets == "refined"

    @property
    def searches(self) -> bool:
        """Whether leave-one-out scores choose the regularization strength."""
        return isinstance(self.reg, str) and self.reg == "loo"

    @property
    def is_squared(self) -> bool:
        """Whether the loss is the squared loss."""
        return losses.resolve(self.loss) is losses.SQUARED

    @property
    def scale_free(self) -> bool:
        """Whether decisions do not depend on the scale of the scores."""
        return self.readout == "gaussian" or not self.fit_intercept

    def in_contrasts(self, n_classes: int) -> bool:
        """Whether k > 2 classes have k − 1 scores; the sum of k scores separates no classes.

        readout="plain" with a table of targets keeps all k, which are those of ridge regressions.
        """
        return n_classes > 2 and (self.refines or self.readout == "gaussian" or not self.is_squared)

    def why_not_from_moments(self) -> str | None:
        """Return why these parameters need samples rather than `Moments`; None if they do not."""
        if self.refines:
            return (
                "targets='refined' needs a second pass over the rows: use 'optimized', 'unbiased', "
                "'naive' or values."
            )
        if not is_linear(self.features):
            return f"features={self.features!r} needs rows: use features='linear'."
        if isinstance(self.noise, NoiseEstimator) or is_estimate(self.noise):
            return (
                f"noise={self.noise!r} needs rows: give a NoiseModel, a transition matrix or None. "
                "An estimator of unflip.estimation can be fitted to a sample of rows."
            )
        if self.loss is not losses.SQUARED and self.loss != "squared":
            return f"loss={self.loss!r} needs rows in every step: use loss='squared'."
        if isinstance(self.reg, str) and self.reg == "theory":
            return (
                "reg='theory' needs rows to test whether they fit the theory: use reg='loo' or a "
                "number."
            )
        return None

    @property
    def for_two_classes(self) -> list[str]:
        """Names of the parameters whose values are for two classes."""
        names = ("noise", "priors", "targets", "deployment_priors", "costs")
        binary = [name for name in names if _n_classes_of(getattr(self, name)) == 2]
        return binary if isinstance(self.loss, str) else [*binary, "loss"]


def _check_features(features: object) -> None:
    """Raise ValueError unless `features` is a name or a transformer."""
    if isinstance(features, str):
        is_valid = features in FEATURES
    else:
        methods = [getattr(features, name, None) for name in ("fit", "transform")]
        is_valid = all(map(callable, methods)) and not isinstance(features, type)
    if not is_valid:
        raise ValueError(
            f"features={shown(features)} is not a valid value: use "
            f"{', '.join(map(repr, FEATURES))}, or a transformer such as KernelFeatures()."
        )
    if hasattr(features, "__sklearn_tags__") and get_tags(features).target_tags.required:
        raise ValueError(
            f"features={shown(features)} needs labels, which would leak into the leave-one-out "
            "scores: use a transformer that is fitted to X alone."
        )


def _n_classes_of(option: object) -> int | None:
    """Return the number of classes that a parameter's value is for, None if for any."""
    if option is None or isinstance(option, str | NoiseEstimator):
        return None
    if isinstance(option, NoiseModel):
        return option.n_classes
    if isinstance(option, Mapping):
        return len(option)
    return len(np.atleast_1d(np.asarray(option, dtype=object)))
