"""What pytest leaves alone when it looks for tests and examples: what tests are made with."""

collect_ignore_glob = ["support/*", "golden/remake.py"]
