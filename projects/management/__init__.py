"""Commands of who: tokens and administrators."""
