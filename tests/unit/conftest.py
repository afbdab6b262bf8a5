"""Fixtures of several modules."""

import pytest

from support.any_classifier import Recording


@pytest.fixture
def recording():
    """Return a `Recording` without records."""
    Recording.fits = []
    Recording.seen = []
    return Recording()
