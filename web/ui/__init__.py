"""What a browser sees: routes, pages, fragments, the event stream, the JSON API, middleware."""
