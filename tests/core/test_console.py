"""A console that is no terminal."""

from tunefree.core.console import LINE_SECONDS, ProgressLine, plain_console


def test_progress_without_a_terminal_is_a_line_now_and_then(capsys):
    progress = ProgressLine(plain_console())
    for rows in (1, 2, 3):
        progress.show(f"{rows} rows")
        progress.last -= LINE_SECONDS * (rows == 1)
    assert capsys.readouterr().out == "2 rows\n"
