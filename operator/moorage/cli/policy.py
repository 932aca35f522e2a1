"""``moorage policy``: the commands about policies."""

from __future__ import annotations

import click

from moorage.cli.policy_explain import explain
from moorage.cli.policy_lint import lint


@click.group("policy", short_help="Check policies, and explain what they mean for a pod.")
def policy() -> None:
    """Check policies, and explain what they mean for a pod.

    \b
    Examples:
      moorage policy lint policies/
      moorage policy explain web-0 -n shop --file cluster.yaml
    """


policy.add_command(lint)
policy.add_command(explain)
