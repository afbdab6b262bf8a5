r"""Classes as Gaussian clusters along the spikes, with labels that depend on the class alone: maximum likelihood.

Coordinates wᵢ of the rows along the spikes are found without labels, so given the true class they
are independent of the observed label ỹᵢ, and

.. math:: p(w_i, \tilde y_i) = \sum_a \pi_a\, N(w_i; m_a, C)\, T_{a\tilde y_i}.

EM finds the proportions π, the means, the common covariance and the transition T together. In each
round row a of T is the cross moment of the labels with the class memberships, and at the optimum of
two classes it agrees with the closed form of `unflip.estimation.CrossMoment` for known geometry.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import linear_sum_assignment
from scipy.stats import chi2_contingency
from sklearn import config_context

from unflip._utils.arrays import pick, softmax, softmax_and_logsumexp, times_table
from unflip._utils.typing import FloatArray, IntArray
from unflip.calibration.binning import random_rows
from unflip.calibration.mixture import ScoreMixture, with_one
from unflip.labels.noise import NoiseModel

# Of the mean log-likelihood of a row: of the labelled mixture, and of what it is started from.
_TOLERANCE, _ROUGH_TOLERANCE = 1e-7, 1e-5
_MAX_ROUNDS = 5000
#: Rows that clusters are looked for in; the mixture is then fitted to all.
MOST_ROWS = 4000
_MOST_PARAMETERS = 300  # whose errors are found together: those of ten classes
_ROWS_FOR_ERRORS = 2000  # an information matrix of so many rows is right to a few percent
# Rows added to every cell of the transition: half a row, so that none is ever taken to be
# impossible.
_PSEUDO_ROWS = 0.5


@dataclass(frozen=True, eq=False)
class Clusters:
    """A labelled Gaussian mixture.

    Attributes
    ----------
    priors : ndarray of shape (k,)
        ClassProportions π of the true classes.
    means : ndarray of shape (k, r)
        Class means along the spikes.
    covariance : ndarray of shape (r, r)
        Common covariance within the classes.
    transition : ndarray of shape (k, k)
        P(observed | true).
    """

    priors: FloatArray
    means: FloatArray
    covariance: FloatArray
    transition: FloatArray

    @property
    def noise(self) -> NoiseModel:
        """The noise model of these classes."""
        return NoiseModel(self.transition, self.priors)

    def log_joint(self, coordinates: FloatArray, codes: IntArray | None) -> FloatArray:
        """Log-density of each row and each true class (n×k), with the observed label or, without codes, on its own."""
        factor = np.linalg.cholesky(self.covariance)
        centre = (
            self.priors @ self.means
        )  # distances from it are small: squares of differences lose no digits
        rows, means = (
            solve_triangular(factor, (points - centre).T, lower=True).T
            for points in (coordinates, self.means)
        )
        squares = (
            (rows**2).sum(axis=1, keepdims=True)
            - 2 * times_table(rows, means.T)
            + (means**2).sum(axis=1)
        )
        log_density = (
            -0.5 * (squares + len(factor) * np.log(2 * np.pi)) - np.log(np.diag(factor)).sum()
        )
        labels = 0.0 if codes is None else pick(np.log(self.transition.T), codes)
        return np.asarray(np.log(self.priors) + log_density + labels)

    def membership(self, coordinates: FloatArray, codes: IntArray | None = None) -> FloatArray:
        """P(true class | coordinates, and observed label where given), n×k."""
        log_joint = self.log_joint(coordinates, codes)
        return np.asarray(softmax(log_joint))

    def log_likelihood(self, coordinates: FloatArray, codes: IntArray | None) -> float:
        """Log-likelihood of coordinates and, where given, labels."""
        return float(softmax_and_logsumexp(self.log_joint(coordinates, codes))[1].sum())


def fit_clusters(
    coordinates: FloatArray,
    codes: IntArray,
    n_classes: int,
    priors: FloatArray | None = None,
    start: Clusters | None = None,
) -> Clusters:
    """Fit the labelled mixture: the likelier of two starts, one from the labels and one from the clusters.

    Parameters
    ----------
    coordinates : ndarray of shape (n, r)
        Rows along the spikes.
    codes : ndarray of shape (n,)
        Observed classes.
    n_classes : int
        k.
    priors : ndarray of shape (k,), optional
        ClassProportions of the true classes, where known.
    start : Clusters, optional
        What `label_free_clusters` found, where that is known already.
    """
    some = random_rows(len(codes), MOST_ROWS)
    few, of_few = coordinates[some], codes[some]
    by_labels = np.full((len(of_few), n_classes), 0.2 / n_classes)
    by_labels[np.arange(len(of_few)), of_few] += 0.8
    by_shape = label_free_clusters(few, n_classes) if start is None else start
    starts = [by_labels, _matched(by_shape.membership(few), of_few)]
    rough = [
        _expectation_maximisation(few, of_few, member, priors, _ROUGH_TOLERANCE)
        for member in starts
    ]
    likelier = max(rough, key=lambda fit: fit.log_likelihood(few, of_few))
    return _expectation_maximisation(
        coordinates, codes, likelier.membership(coordinates, codes), priors, _TOLERANCE
    )


def label_free_clusters(coordinates: FloatArray, n_classes: int) -> Clusters:
    """Fit Gaussian clusters with a common covariance, without labels, from k-means; their transition means nothing."""
    from sklearn.cluster import KMeans  # brings half of scikit-learn, and most fits do without

    if n_classes == 1:
        covariance = np.cov(coordinates.T, bias=True).reshape(2 * coordinates.shape[1:])
        return Clusters(np.ones(1), coordinates.mean(axis=0)[None, :], covariance, np.ones((1, 1)))
    with config_context(array_api_dispatch=False):  # k-means knows NumPy's arrays alone
        nearest = KMeans(n_classes, n_init=1, random_state=0).fit_predict(coordinates)
    return _expectation_maximisation(
        coordinates, None, np.eye(n_classes)[nearest], None, _ROUGH_TOLERANCE
    )


def cluster_gain(coordinates: FloatArray, clusters: Clusters) -> float:
    """Return by how much Bayes' information criterion prefers the clusters to a single one."""
    alone = label_free_clusters(coordinates, 1)
    k, r = clusters.means.shape
    gain = clusters.log_likelihood(coordinates, None) - alone.log_likelihood(coordinates, None)
    return float(2 * gain - (k - 1) * (r + 1) * np.log(len(coordinates)))


def standard_errors(
    fit: Clusters, coordinates: FloatArray, *, known_priors: bool = False
) -> FloatArray:
    """Return those of the transition, k×k; for many classes as if proportions and shape of the clusters were known."""
    k = len(fit.priors)
    some = coordinates[random_rows(len(coordinates), _ROWS_FOR_ERRORS)]
    every = len(coordinates) / len(some)
    if _n_parameters(fit) <= _MOST_PARAMETERS:
        covariances = _covariances(fit, some, known_priors=known_priors)
    else:
        covariances = _covariances_by_class(fit, some)
    errors = np.zeros((k, k))
    for a, covariance in enumerate(covariances):
        errors[a, _others(a, k)] = np.sqrt(np.diag(covariance) / every)
        errors[a, a] = np.sqrt(covariance.sum() / every)
    return errors


def _covariances(fit: Clusters, coordinates: FloatArray, *, known_priors: bool) -> list[FloatArray]:
    """Return the covariance matrix of the flip rates out of each class, (k − 1)×(k − 1), by all parameters."""
    k = len(fit.priors)
    estimated = np.ones(_n_parameters(fit), dtype=bool)
    estimated[k * (k - 1) : k * (k - 1) + k - 1] = not known_priors
    information = _information(fit, coordinates)[np.ix_(estimated, estimated)]
    inverse = np.linalg.pinv(information, hermitian=True)
    of_pairs = inverse[: k * (k - 1), : k * (k - 1)].reshape(k, k - 1, k, k - 1)
    return [of_pairs[a, :, a, :] for a in range(k)]


def _covariances_by_class(fit: Clusters, coordinates: FloatArray) -> list[FloatArray]:
    """Return the same as if all but the flip rates out of that class were known."""
    k, member = len(fit.priors), fit.membership(coordinates)
    power = (member**2).T @ (1 / (member @ fit.transition))
    information = [np.diag(power[a, _others(a, k)]) + power[a, a] for a in range(k)]
    return [np.linalg.pinv(matrix, hermitian=True) for matrix in information]


def label_association(fit: Clusters, coordinates: FloatArray, codes: IntArray) -> float:
    """Return the p-value of labels that are independent of the clusters (chi-square)."""
    k = len(fit.priors)
    nearest = np.argmax(fit.membership(coordinates), axis=1)
    table = np.bincount(nearest * k + codes, minlength=k * k).reshape(k, k)
    seen = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    return float(chi2_contingency(seen).pvalue)


def prior_influence(fit: Clusters, coordinates: FloatArray, codes: IntArray) -> FloatArray:
    """Influence of each row on the proportions of all classes but the last, n×(k − 1)."""
    k = len(fit.priors)
    chosen = slice(k * (k - 1), k * (k - 1) + k - 1)
    inverse = np.linalg.pinv(_information(fit, coordinates), hermitian=True)
    influence = len(codes) * _scores(fit, coordinates, codes) @ inverse[:, chosen]
    return np.asarray(influence)


def _expectation_maximisation(
    coordinates: FloatArray,
    codes: IntArray | None,
    member: FloatArray,
    priors: FloatArray | None,
    tolerance: float,
) -> Clusters:
    """Fit from first memberships, in coordinates of covariance 1."""
    n, r = coordinates.shape
    centre, scale = (
        coordinates.mean(axis=0),
        np.linalg.cholesky(np.cov(coordinates.T, bias=True).reshape(r, r)),
    )
    standard = with_one(solve_triangular(scale, (coordinates - centre).T, lower=True).T)
    previous, share = -np.inf, np.full(n, 1 / n)
    for _ in range(_MAX_ROUNDS):
        mixture = ScoreMixture.of(standard, member, share, 1 / n)
        proportions, transition = (
            mixture.mass if priors is None else priors,
            _transition(member, codes),
        )
        logits = mixture.logits(standard, np.log(proportions))
        if codes is not None:
            logits += pick(np.log(transition.T), codes)
        member, per_row = softmax_and_logsumexp(logits)
        current = float(per_row.mean()) + _mean_log_density(mixture)
        if current - previous < tolerance:
            break
        previous = current
    covariance = scale @ np.linalg.inv(mixture.precision) @ scale.T
    return Clusters(proportions, centre + mixture.means @ scale.T, covariance, transition)


def _mean_log_density(mixture: ScoreMixture) -> float:
    """Mean log-density of rows of covariance 1 about 0 in the first class, but for a constant."""
    first, precision = mixture.means[0], mixture.precision
    return (
        float(np.linalg.slogdet(precision)[1] - np.trace(precision) - first @ precision @ first) / 2
    )


def _transition(member: FloatArray, codes: IntArray | None) -> FloatArray:
    k = member.shape[1]
    counts = np.full((k, k), _PSEUDO_ROWS)
    if codes is not None:
        counts += np.stack([np.bincount(codes, member[:, a], minlength=k) for a in range(k)])
    return np.asarray(counts / counts.sum(axis=1, keepdims=True))


def _matched(member: FloatArray, codes: IntArray) -> FloatArray:
    """Name each cluster after the class whose labels it holds most of, one to one."""
    k = member.shape[1]
    counts = np.stack(
        [np.bincount(codes, member[:, a], minlength=k) for a in range(k)], axis=1
    )  # class × cluster
    _, cluster = linear_sum_assignment(counts / counts.sum(axis=0), maximize=True)
    return np.asarray(member[:, cluster])


def _n_parameters(fit: Clusters) -> int:
    k, r = fit.means.shape
    return int(k * (k - 1) + (k - 1) + k * r + r * (r + 1) // 2)


def _information(fit: Clusters, coordinates: FloatArray) -> FloatArray:
    """Outer products of the scores, summed over rows and averaged over the labels that the fit expects."""
    expected = fit.membership(coordinates) @ fit.transition
    information = np.zeros(())
    for label in range(len(fit.priors)):
        score = _scores(fit, coordinates, np.full(len(coordinates), label))
        information = information + (expected[:, [label]] * score).T @ score
    return np.asarray(information)


def _scores(fit: Clusters, coordinates: FloatArray, codes: IntArray) -> FloatArray:
    """Differentiate each row's log-likelihood by rates, proportions, means and covariance."""
    member = fit.membership(coordinates, codes)
    by_priors = member[:, :-1] / fit.priors[:-1] - member[:, -1:] / fit.priors[-1]
    return np.hstack(
        [_label_scores(fit, member, codes), by_priors, _shape_scores(fit, member, coordinates)]
    )


def _label_scores(fit: Clusters, member: FloatArray, codes: IntArray) -> FloatArray:
    """Differentiate by the off-diagonal rates, row by row of the transition; the diagonal is what they leave."""
    k = len(fit.priors)
    columns = [
        member[:, a] * ((codes == b) / fit.transition[a, b] - (codes == a) / fit.transition[a, a])
        for a in range(k)
        for b in _others(a, k)
    ]
    return np.stack(columns, axis=1)


def _shape_scores(fit: Clusters, member: FloatArray, coordinates: FloatArray) -> FloatArray:
    """Differentiate by the class means and by the common covariance."""
    precision = np.linalg.inv(fit.covariance)
    deviation = coordinates[:, None, :] - fit.means[None, :, :]
    pulled = deviation @ precision
    by_means = (member[:, :, None] * pulled).reshape(len(member), -1)
    outer = np.einsum("na,nai,naj->nij", member, pulled, pulled) - precision
    rows, columns = np.triu_indices(len(precision))
    return np.hstack([by_means, outer[:, rows, columns] / 2])


def _others(a: int, k: int) -> list[int]:
    return [b for b in range(k) if b != a]
