"""Skills: folders with a SKILL.md that tell the agent how something is done (the format of agentskills.io)."""
