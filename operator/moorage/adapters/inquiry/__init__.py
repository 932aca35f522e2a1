"""Answers questions of people about a running scheduler, over HTTP; who asks must be allowed to."""
