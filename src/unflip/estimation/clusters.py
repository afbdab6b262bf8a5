r"""Maximum-likelihood fit of Gaussian clusters with noisy labels, along the spikes.

Coordinates wᵢ of the rows along the spikes are computed without labels. Given the true class, they
are independent of the observed label ỹᵢ, so

.. math:: p(w_i, \tilde y_i) = \sum_a \pi_a\, N(w_i; m_a, C)\, T_{a\tilde y_i}.

EM fits the priors π, the means m, the common covariance C and the transition T. For two classes
the fit agrees with the closed form of `unflip.estimation.CrossMoment` for known geometry.
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
from unflip.calibration.mixture import ScoreMixture, with_ones
from unflip.labels.noise import NoiseModel

#: EM stops once the mean log-likelihood of a row rises by less than this. A choice: ten times more
#: moves the rates of three classes by 0.01 standard errors, ten times less by 0.004.
_TOLERANCE = 1e-7
#: The same for starting values: ten times more or less moves the rates by at most 0.01 standard
#: errors.
_ROUGH_TOLERANCE = 1e-5
#: Limit on EM rounds, so that they end if the tolerance is below rounding errors. Three separated
#: classes need at most 50.
_MAX_ROUNDS = 5000
#: Rows used for starting values; the final fit uses all rows. Half and double move the rates by
#: less than 0.01 standard errors.
MOST_ROWS = 4000
#: Most parameters whose standard errors are computed jointly, about those of ten classes. Beyond
#: that, other parameters are taken to be known, which moves errors of three classes by at most 3%.
_MOST_PARAMETERS = 300
#: Rows used for the information matrix: with half and double, standard errors move by up to 3%.
_ROWS_FOR_ERRORS = 2000
#: Labels are independent of the clusters unless the p-value is below this, as it is in one of a
#: thousand data sets with independent labels.
SMALLEST_P_VALUE = 0.001


@dataclass(frozen=True, eq=False)
class Clusters:
    """A Gaussian mixture with noisy labels.

    Attributes
    ----------
    priors : ndarray of shape (k,)
        Proportions π of the true classes.
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
        """The noise model."""
        return NoiseModel(self.transition, self.priors)

    def log_joint(self, coordinates: FloatArray, codes: IntArray | None) -> FloatArray:
        """Return the log-density of rows for each true class, n×k; with labels unless None."""
        factor = np.linalg.cholesky(self.covariance)
        # Distances from the centre are small, so that squares of differences lose no digits.
        centre = self.priors @ self.means
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
        """Return P(true class | coordinates, and observed labels unless None), n×k."""
        return np.asarray(softmax(self.log_joint(coordinates, codes)))

    def log_likelihood(self, coordinates: FloatArray, codes: IntArray | None) -> float:
        """Return the log-likelihood of coordinates and, unless None, labels."""
        return float(softmax_and_logsumexp(self.log_joint(coordinates, codes))[1].sum())


def fit_clusters(
    coordinates: FloatArray,
    codes: IntArray,
    n_classes: int,
    priors: FloatArray | None = None,
    start: Clusters | None = None,
) -> Clusters:
    """Fit the mixture from two starts, the labels and k-means, and keep the likelier.

    Parameters
    ----------
    coordinates : ndarray of shape (n, r)
        Coordinates of the rows along the spikes.
    codes : ndarray of shape (n,)
        Observed classes.
    n_classes : int
        Number of classes k.
    priors : ndarray of shape (k,), optional
        Proportions of the true classes. None: they are estimated.
    start : Clusters, optional
        Result of `unsupervised_clusters`. None: it is computed.
    """
    sample = random_rows(len(codes), MOST_ROWS)
    sample_rows = coordinates[sample]
    sample_codes = codes[sample]
    by_labels = np.full((len(sample), n_classes), 0.2 / n_classes)
    by_labels[np.arange(len(sample)), sample_codes] += 0.8  # labels are mostly right
    if start is None:
        start = unsupervised_clusters(sample_rows, n_classes)
    by_clusters = _matched(start.membership(sample_rows), sample_codes)
    fits = [
        _expectation_maximization(sample_rows, sample_codes, member, priors, _ROUGH_TOLERANCE)
        for member in (by_labels, by_clusters)
    ]
    likelier = max(fits, key=lambda fit: fit.log_likelihood(sample_rows, sample_codes))
    member = likelier.membership(coordinates, codes)
    return _expectation_maximization(coordinates, codes, member, priors, _TOLERANCE)


def unsupervised_clusters(coordinates: FloatArray, n_classes: int) -> Clusters:
    """Fit clusters without labels, from k-means; their transition matrix is meaningless."""
    # Imported here: it loads half of scikit-learn, and most fits do not need it.
    from sklearn.cluster import KMeans

    if n_classes == 1:
        covariance = np.cov(coordinates.T, bias=True).reshape(2 * coordinates.shape[1:])
        return Clusters(np.ones(1), coordinates.mean(axis=0)[None, :], covariance, np.ones((1, 1)))
    with config_context(array_api_dispatch=False):  # k-means supports NumPy arrays only
        nearest = KMeans(n_classes, n_init=1, random_state=0).fit_predict(coordinates)
    member = np.eye(n_classes)[nearest]
    return _expectation_maximization(coordinates, None, member, None, _ROUGH_TOLERANCE)


def cluster_gain(coordinates: FloatArray, clusters: Clusters) -> float:
    """Return the gain in the Bayesian information criterion of the clusters over a single one."""
    single = unsupervised_clusters(coordinates, 1)
    k, r = clusters.means.shape
    gain = clusters.log_likelihood(coordinates, None) - single.log_likelihood(coordinates, None)
    return float(2 * gain - (k - 1) * (r + 1) * np.log(len(coordinates)))


def standard_errors(
    fit: Clusters, coordinates: FloatArray, *, known_priors: bool = False
) -> FloatArray:
    """Return the standard errors of the transition matrix, k×k.

    For many classes, priors and shape of the clusters are taken to be known.
    """
    k = len(fit.priors)
    sample = coordinates[random_rows(len(coordinates), _ROWS_FOR_ERRORS)]
    rows_per_sampled = len(coordinates) / len(sample)
    if _n_parameters(fit) <= _MOST_PARAMETERS:
        covariances = _joint_covariances(fit, sample, known_priors=known_priors)
    else:
        covariances = _covariances_by_class(fit, sample)
    errors = np.zeros((k, k))
    for a, covariance in enumerate(covariances):
        errors[a, _others(a, k)] = np.sqrt(np.diag(covariance) / rows_per_sampled)
        errors[a, a] = np.sqrt(covariance.sum() / rows_per_sampled)
    return errors


def _joint_covariances(
    fit: Clusters, coordinates: FloatArray, *, known_priors: bool
) -> list[FloatArray]:
    """Return the covariance of the rates of each class, (k − 1)×(k − 1), by all parameters."""
    k = len(fit.priors)
    is_estimated = np.ones(_n_parameters(fit), dtype=bool)
    is_estimated[k * (k - 1) : k * (k - 1) + k - 1] = not known_priors
    information = _information(fit, coordinates)[np.ix_(is_estimated, is_estimated)]
    inverse = np.linalg.pinv(information, hermitian=True)
    of_pairs = inverse[: k * (k - 1), : k * (k - 1)].reshape(k, k - 1, k, k - 1)
    return [of_pairs[a, :, a, :] for a in range(k)]


def _covariances_by_class(fit: Clusters, coordinates: FloatArray) -> list[FloatArray]:
    """Return the same as if all parameters but the rates of the class were known."""
    k = len(fit.priors)
    member = fit.membership(coordinates)
    power = (member**2).T @ (1 / (member @ fit.transition))
    information = [np.diag(power[a, _others(a, k)]) + power[a, a] for a in range(k)]
    return [np.linalg.pinv(matrix, hermitian=True) for matrix in information]


def label_association(fit: Clusters, coordinates: FloatArray, codes: IntArray) -> float:
    """Return the p-value of a chi-square test that labels are independent of the clusters."""
    k = len(fit.priors)
    nearest = np.argmax(fit.membership(coordinates), axis=1)
    table = np.bincount(nearest * k + codes, minlength=k * k).reshape(k, k)
    non_empty = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    return float(chi2_contingency(non_empty).pvalue)


def prior_influence(fit: Clusters, coordinates: FloatArray, codes: IntArray) -> FloatArray:
    """Return the influence of rows on the priors of all classes but the last, n×(k − 1)."""
    k = len(fit.priors)
    priors = slice(k * (k - 1), k * (k - 1) + k - 1)
    inverse = np.linalg.pinv(_information(fit, coordinates), hermitian=True)
    influence = len(codes) * _scores(fit, coordinates, codes) @ inverse[:, priors]
    return np.asarray(influence)


def _expectation_maximization(
    coordinates: FloatArray,
    codes: IntArray | None,
    member: FloatArray,
    priors: FloatArray | None,
    tolerance: float,
) -> Clusters:
    """Fit from starting memberships, in coordinates standardized to covariance 1."""
    n, r = coordinates.shape
    centre = coordinates.mean(axis=0)
    scale = np.linalg.cholesky(np.cov(coordinates.T, bias=True).reshape(r, r))
    standard = with_ones(solve_triangular(scale, (coordinates - centre).T, lower=True).T)
    previous = -np.inf
    share = np.full(n, 1 / n)
    for _ in range(_MAX_ROUNDS):
        mixture = ScoreMixture.of(standard, member, share, n)
        proportions = mixture.mass if priors is None else priors
        transition = _transition(member, codes)
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
    """Return the mean log-density in the first class of standardized rows, up to a constant."""
    first = mixture.means[0]
    precision = mixture.precision
    log_determinant = np.linalg.slogdet(precision)[1]
    return float(log_determinant - np.trace(precision) - first @ precision @ first) / 2


def _transition(member: FloatArray, codes: IntArray | None) -> FloatArray:
    """Return the transition matrix for these memberships; Jeffreys' prior keeps rates above 0."""
    k = member.shape[1]
    counts = np.full((k, k), 0.5)
    if codes is not None:
        counts += np.stack([np.bincount(codes, member[:, a], minlength=k) for a in range(k)])
    return np.asarray(counts / counts.sum(axis=1, keepdims=True))


def _matched(member: FloatArray, codes: IntArray) -> FloatArray:
    """Return memberships with clusters matched one to one to classes, by their labels."""
    k = member.shape[1]
    # Class × cluster.
    counts = np.stack([np.bincount(codes, member[:, a], minlength=k) for a in range(k)], axis=1)
    _, cluster = linear_sum_assignment(counts / counts.sum(axis=0), maximize=True)
    return np.asarray(member[:, cluster])


def _n_parameters(fit: Clusters) -> int:
    k, r = fit.means.shape
    return int(k * (k - 1) + (k - 1) + k * r + r * (r + 1) // 2)


def _information(fit: Clusters, coordinates: FloatArray) -> FloatArray:
    """Return the Fisher information: summed over rows, averaged over their expected labels."""
    expected = fit.membership(coordinates) @ fit.transition
    information = np.zeros(())
    for label in range(len(fit.priors)):
        score = _scores(fit, coordinates, np.full(len(coordinates), label))
        information = information + (expected[:, [label]] * score).T @ score
    return np.asarray(information)


def _scores(fit: Clusters, coordinates: FloatArray, codes: IntArray) -> FloatArray:
    """Return derivatives of log-likelihoods of rows by rates, priors, means and covariance."""
    member = fit.membership(coordinates, codes)
    by_priors = member[:, :-1] / fit.priors[:-1] - member[:, -1:] / fit.priors[-1]
    return np.hstack(
        [_label_scores(fit, member, codes), by_priors, _shape_scores(fit, member, coordinates)]
    )


def _label_scores(fit: Clusters, member: FloatArray, codes: IntArray) -> FloatArray:
    """Return derivatives by the off-diagonal rates, class by class; the diagonal follows."""
    k = len(fit.priors)
    columns = [
        member[:, a] * ((codes == b) / fit.transition[a, b] - (codes == a) / fit.transition[a, a])
        for a in range(k)
        for b in _others(a, k)
    ]
    return np.stack(columns, axis=1)


def _shape_scores(fit: Clusters, member: FloatArray, coordinates: FloatArray) -> FloatArray:
    """Return derivatives by the class means and the common covariance."""
    precision = np.linalg.inv(fit.covariance)
    deviation = coordinates[:, None, :] - fit.means[None, :, :]
    pulled = deviation @ precision
    by_means = (member[:, :, None] * pulled).reshape(len(member), -1)
    outer = np.einsum("na,nai,naj->nij", member, pulled, pulled) - precision
    rows, columns = np.triu_indices(len(precision))
    return np.hstack([by_means, outer[:, rows, columns] / 2])


def _others(a: int, k: int) -> list[int]:
    """Return all classes but a."""
    return [b for b in range(k) if b != a]
