"""The page's event stream: frames of what changed, and how often they are sent."""
