"""Skills: folders with a `SKILL.md` that teach a model how to go about something."""
