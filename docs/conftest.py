"""Files that pytest ignores in docs: scripts, and files of the site build."""

collect_ignore = ["conf.py", "figures", "gallery", "api/generated"]
