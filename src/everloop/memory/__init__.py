"""What the agent remembers, and what it is able to do: memory documents, facts, recall, consolidation, skills."""
