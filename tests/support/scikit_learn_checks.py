"""What scikit-learn's checks of estimators show."""

import importlib.util
from contextlib import suppress
from unittest import SkipTest

from sklearn.utils.estimator_checks import estimator_checks_generator


def may_be_skipped(result):
    """Whether a check may be skipped: array API without its variable, and two without pandas."""
    if result["status"] == "passed" or "array_api" in result["check_name"]:
        return True
    return (
        "pandas is not installed" in str(result["exception"])
        and importlib.util.find_spec("pandas") is None
    )


def namespaces_passed(estimator):
    """Run the checks of array namespaces; return those that are installed and passed."""
    passed = set()
    for _, check in estimator_checks_generator(estimator, mark=None):
        if "array_api" in check.func.__name__:
            with suppress(SkipTest):
                check(estimator)
                passed.add(check.keywords.get("array_namespace"))
    return passed
