"""`python -m tercet` is the `tercet` command."""

from tercet.cli import app

app(prog_name="tercet")
