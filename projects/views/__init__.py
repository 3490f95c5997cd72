"""Pages of who: signing in, people, projects, tokens, preferences, the trail. One file a theme."""
