"""What pytest leaves alone when it runs the pages' examples: what the site's build needs or writes."""

collect_ignore = ["conf.py", "gallery", "api/generated"]
