"""Real data for tests: where it is, and the skip where it is not."""

import os
from pathlib import Path

import pytest

needs_data = pytest.mark.skipif(
    not Path(os.environ.get("UNFLIP_DATA", ""), "amazon_reviews").is_dir()
    or not os.environ.get("UNFLIP_DATA"),
    reason="UNFLIP_DATA does not name a folder with amazon_reviews/",
)

needs_published = pytest.mark.skipif(
    not all(
        Path(os.environ.get("UNFLIP_DATA", ""), name).is_dir()
        for name in ("amazon_reviews", "paper_results")
    )
    or not os.environ.get("UNFLIP_DATA"),
    reason="UNFLIP_DATA does not name a folder with amazon_reviews/ and paper_results/",
)
