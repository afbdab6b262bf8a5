"""What pytest leaves alone when it runs the pages' examples: scripts, and what the site's build needs or writes."""

collect_ignore = ["conf.py", "figures", "gallery", "api/generated"]
