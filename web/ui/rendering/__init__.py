"""From parts to HTML: the templates, what they are given, and script and style."""
