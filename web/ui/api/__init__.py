"""The JSON API: its operations, their shapes, and the document that describes them."""
