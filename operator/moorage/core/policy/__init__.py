"""Policies as the core applies them: which pods each is about, what several come to together, and how they fare."""
