"""Cutting a shell script into its top-level commands, without running it.

This is a reader of shell syntax that would rather give up than be wrong: whatever it is not sure of raises
Unsure, and the caller then treats the script as one command.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

HIDDEN = "\x01"
"""Stands in `Piece.bare` for a character that is quoted, expanded or in parentheses."""

_CLOSES = {"fi": "if", "done": "loop", "}": "{", "esac": "case"}
_OPENS = {"if": "if", "for": "loop", "while": "loop", "until": "loop", "{": "{", "case": "case-head"}
_LEADERS = {"then", "else", "elif", "do", "!", "time", "{", "if", "while", "until"}
_HEREDOC = re.compile(r"<<(-?)[ \t]*(?:'([^'\n]+)'|\"([^\"\n]+)\"|(\\?)([A-Za-z0-9_.!%+-]+))")
_WORD = re.compile(r"[^\s;&|()<>'\"`$\\]+")
_NO_BODY = re.compile(r"\(\s*\)")


class Unsure(Exception):
    """The text uses syntax that this reader does not follow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One top-level command."""

    text: str
    """Exact text, here-documents included."""
    live: str
    """The text with everything blanked that the shell does not expand: single quotes, quoted
    here-documents, comments."""
    bare: str
    """The text with everything HIDDEN that cannot change the state of the shell that runs it: quoted text,
    expansions, here-documents, subshells."""
    comment: str = ""
    """The comment lines right above it, without their marks."""


def pieces(script: str) -> list[Piece]:
    """The top-level commands in order. Raises Unsure."""
    try:
        return _Reader(script if script.endswith("\n") else script + "\n").read()
    except (IndexError, RecursionError) as error:
        raise Unsure("the script ends within a command, or nests too deeply") from error


class _Reader:
    """One pass over a script; `at` is the next character, `stack` the open compound commands."""

    def __init__(self, script: str):
        self.script = script
        self.live = list(script)
        self.bare = list(script)
        self.at = 0
        self.stack: list[str] = []
        self.heredocs: list[tuple[str, bool, bool]] = []
        self.at_command = True
        self.continued = False

    def read(self) -> list[Piece]:
        found: list[Piece] = []
        comments: list[str] = []
        start = 0
        while self.at < len(self.script):
            ended_line = self.script[self.at] == "\n"
            self._token()
            if not ended_line or self.stack or self.continued:
                continue
            piece = self._piece(start, comments)
            start = self.at
            if piece is not None:
                found.append(piece)
                comments = []
        if self.stack or self.continued or self.script[start:].strip():
            raise Unsure("the script ends within a command")
        return found

    def _piece(self, start: int, comments: list[str]) -> Piece | None:
        text = self.script[start : self.at].strip("\n")
        if not text.strip():
            comments.clear()
            return None
        live = "".join(self.live[start : self.at])
        if not live.strip() and text.lstrip().startswith("#"):
            if not text.startswith("#!"):
                comments.append(text.strip().strip("#").strip(" -=#"))
            return None
        bare = "".join(self.bare[start : self.at])
        return Piece(text=text, live=live, bare=bare, comment=" ".join(filter(None, comments)))

    def _hide(self, end: int, *, expanded: bool = True, mark: str = HIDDEN) -> None:
        """Pass to `end`: out of `bare`, and out of `live` unless the shell expands it."""
        self.bare[self.at : end] = [mark] * (end - self.at)
        if not expanded:
            self.live[self.at : end] = [" "] * (end - self.at)
        self.at = end

    def _token(self) -> None:
        char = self.script[self.at]
        if char == "\n":
            self._newline()
        elif char in " \t":
            self.at += 1
        elif char == "#":
            self._hide(_find(self.script, "\n", self.at), expanded=False, mark=" ")
        elif self.stack and self.stack[-1] == "case-pattern":
            self._case_pattern()
        elif self.script.startswith("\\\n", self.at):
            self._hide(self.at + 2, mark=" ")
            self.continued = True
        elif char in "'\"`$\\":
            self._hide(_end_of_quoted(self.script, self.at), expanded=not self._is_literal())
            self.at_command = self.continued = False
        elif char in ";&|":
            self._separator()
        elif char in "()":
            self._parenthesis()
        elif char in "<>":
            self._redirection()
        else:
            self._word()

    def _is_literal(self) -> bool:
        return self.script[self.at] in "'\\" or self.script.startswith("$'", self.at)

    def _newline(self) -> None:
        self.at += 1
        self.at_command = True
        for delimiter, tabs, quoted in self.heredocs:
            self._hide(_end_of_heredoc(self.script, self.at, delimiter, tabs), expanded=not quoted, mark=" ")
        self.heredocs.clear()

    def _case_pattern(self) -> None:
        match = _WORD.match(self.script, self.at)
        if match and match[0] == "esac":
            self.stack.pop()
            self.at_command = self.continued = False
        elif self.script[self.at] == ")":
            self.stack[-1] = "case-body"
            self.at_command = True
        if self.script[self.at] in "'\"$\\`":
            self.at = _end_of_quoted(self.script, self.at)
        else:
            self.at = match.end() if match else self.at + 1

    def _separator(self) -> None:
        two = self.script[self.at : self.at + 2]
        if two in {";;", ";&"}:
            if not self.stack or self.stack[-1] != "case-body":
                raise Unsure(f"{two} outside case")
            self.stack[-1] = "case-pattern"
        self.at += 2 if two in {";;", ";&", "&&", "||", "|&", "&>"} else 1
        self.continued = two in {"&&", "||"} or two[0] == "|"
        self.at_command = two != "&>"

    def _parenthesis(self) -> None:
        if self.script[self.at] == ")":
            raise Unsure("a parenthesis that was not opened")
        empty = _NO_BODY.match(self.script, self.at)
        if empty:  # `name ()`: the function's body follows
            self.at = empty.end()
            self.at_command = self.continued = True
            return
        self._hide(_end_of_parentheses(self.script, self.at))
        self.at_command = self.continued = False

    def _redirection(self) -> None:
        script = self.script
        self.continued = self.at_command = False
        if script[self.at : self.at + 2] in {"<(", ">("}:
            self._hide(_end_of_parentheses(script, self.at + 1))
        elif script.startswith("<<", self.at) and not script.startswith("<<<", self.at):
            match, heredoc = _heredoc(script, self.at)
            self.heredocs.append(heredoc)
            self._hide(match, mark=" ")
        else:
            self.at += 3 if script.startswith("<<<", self.at) else 1
            if script[self.at : self.at + 1] in {"&", "|", ">"}:
                self.at += 1

    def _word(self) -> None:
        match = _WORD.match(self.script, self.at)
        if match is None:
            raise Unsure(f"unexpected {self.script[self.at]!r}")
        word = match[0]
        whole = self.script[match.end()] in " \t\n;&|()<>"
        self.at = match.end()
        was_at_command, self.at_command, self.continued = self.at_command, False, False
        if self.stack and self.stack[-1] == "case-head" and word == "in":
            self.stack[-1] = "case-pattern"
        elif was_at_command and whole:
            self._reserved(word)

    def _reserved(self, word: str) -> None:
        if word in {"function", "coproc", "select"}:
            raise Unsure(word)
        if word == "[[":
            self.at = _end_of_brackets(self.script, self.at)
        self.at_command = word in _LEADERS
        if word in _OPENS:
            self.stack.append(_OPENS[word])
        elif word in _CLOSES:
            opened = self.stack.pop() if self.stack else ""
            if opened.removesuffix("-body") != _CLOSES[word]:
                raise Unsure(f"{word} without its beginning")


def _find(script: str, what: str, start: int) -> int:
    end = script.find(what, start)
    if end < 0:
        raise Unsure(f"no {what!r} to the end")
    return end


def _heredoc(script: str, at: int) -> tuple[int, tuple[str, bool, bool]]:
    """End of the operator at `at`, and (delimiter, tabs are dropped, the body is literal)."""
    match = _HEREDOC.match(script, at)
    if match is None:
        raise Unsure("a here-document with an odd delimiter")
    single, double, escape, plain = match[2], match[3], match[4], match[5]
    return match.end(), (single or double or plain, match[1] == "-", bool(single or double or escape))


def _end_of_heredoc(script: str, at: int, delimiter: str, tabs: bool) -> int:
    while at < len(script):
        end = _find(script, "\n", at)
        line = script[at:end]
        at = end + 1
        if (line.lstrip("\t") if tabs else line) == delimiter:
            return at
    raise Unsure(f"here-document {delimiter} has no end")


def _end_of_quoted(script: str, at: int) -> int:
    """End of the quoted piece, escape or expansion that starts at `at`."""
    char, following = script[at], script[at + 1 : at + 2]
    if char == "'":
        return _find(script, "'", at + 1) + 1
    if char == "\\":
        return at + 2
    if char == '"':
        return _scan(script, at + 1, '"')
    if char == "`":
        return _scan(script, at + 1, "`")
    if following == "(":
        return _end_of_parentheses(script, at + 1)
    if following == "{":
        return _scan(script, at + 2, "}")
    if following == "'":
        return _end_of_ansi(script, at + 2)
    match = re.compile(r"\$(?:[A-Za-z_]\w*|.)?").match(script, at)
    return match.end() if match else at + 1


def _end_of_ansi(script: str, at: int) -> int:
    while script[at : at + 1] not in {"'", ""}:
        at += 2 if script[at] == "\\" else 1
    return _find(script, "'", at) + 1


def _scan(script: str, at: int, end: str) -> int:
    """Pass `end`, minding what is nested within double quotes, backquotes or braces."""
    while at < len(script):
        char = script[at]
        if char == end:
            return at + 1
        if char == "\\":
            at += 2
        elif char == "'" and end == "}":
            raise Unsure("a quote within ${}")
        elif char == "`" or (char == '"' and end == "}") or (char == "$" and script[at + 1] in "({"):
            at = _end_of_quoted(script, at)
        else:
            at += 1
    raise Unsure(f"no {end!r} to the end")


def _end_of_parentheses(script: str, at: int) -> int:
    """End of the group that the parenthesis at `at` opens; here-documents in it are passed."""
    arithmetic = script.startswith("((", at)
    depth, heredocs = 0, list[tuple[str, bool, bool]]()
    while at < len(script):
        char = script[at]
        if char in "()":
            depth += 1 if char == "(" else -1
            at += 1
            if depth == 0:
                return at
        elif char in "'\"`$\\":
            at = _end_of_quoted(script, at)
        elif char == "#" and script[at - 1] in " \t\n;(" and not arithmetic:
            at = _find(script, "\n", at)
        elif char == "\n":
            at += 1
            for delimiter, tabs, _ in heredocs:
                at = _end_of_heredoc(script, at, delimiter, tabs)
            heredocs.clear()
        elif script.startswith("<<", at) and not script.startswith("<<<", at) and not arithmetic:
            at, heredoc = _heredoc(script, at)
            heredocs.append(heredoc)
        elif re.compile(r"\bcase\s").match(script, at):
            raise Unsure("case within parentheses")
        else:
            at += 3 if script.startswith("<<<", at) else 1
    raise Unsure("a parenthesis that is not closed")


def _end_of_brackets(script: str, at: int) -> int:
    """End of a `[[` condition."""
    while at < len(script):
        if script[at] in "'\"`$\\":
            at = _end_of_quoted(script, at)
        elif script.startswith("]]", at) and script[at - 1] in " \t\n":
            return at + 2
        else:
            at += 1
    raise Unsure("[[ that is not closed")
