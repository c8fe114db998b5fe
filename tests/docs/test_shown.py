"""Every command that a document shows is run by something, or a reason stands beside it."""

import shown


def test_something_runs_each_command_or_a_reason_is_given():
    commands = shown.commands()
    assert [command for command in commands if not shown.what_runs(command)] == []
    assert len(commands) > 150


def test_a_command_that_nothing_runs_is_noticed():
    assert shown.what_runs("make nothing") == shown.what_runs("python tests/tools/none.py") == ""
    assert shown.what_runs("minitx list") == "tests/docs/test_commands.py"
    assert shown.what_runs("minitx fetch gpt2").startswith("not run: it needs the network")
