"""Who: organisations, people, projects, memberships, tokens, and the one permission door."""
