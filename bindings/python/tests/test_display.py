"""Text on its way to a person's screen."""

import pytest

import branchline as bl


def test_what_a_terminal_would_obey_is_taken_out():
    assert bl.sanitize_for_display("\x1b[31mred\x1b[0m \x1b]0;title\x07user\u202etxt\r\n\tü\0") == "red usertxt\n\tü"
    assert bl.sanitize_for_display("half \ud83d") == "half \ufffd"
    assert "terminal" in bl.sanitize_for_display.__doc__
    with pytest.raises(TypeError):
        bl.sanitize_for_display(b"bytes")
