"""Reads shell scripts as text: which commands they would run, with which words. Nothing is ever executed.

Understands assignments, arrays, functions with positional arguments, here-documents and
``${VAR:-default}``. What needs a shell (command substitution, conditions) stays as it is written, so a word
may keep a ``$``.
"""

from __future__ import annotations

import ast
import operator
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache

import msgspec

_ASSIGN = re.compile(r"(?:export |local |readonly |declare (?:-\S+ )?)?([A-Za-z_]\w*)=(.*)\Z", re.DOTALL)
_ARRAY = re.compile(r"([A-Za-z_]\w*)(\+?)=\(")
_FUNCTION = re.compile(r"(?:function\s+)?([A-Za-z_]\w*)\s*\(\)\s*\{?\s*\Z")
_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1")
_VARIABLE = re.compile(r"\$\{(\w+|@)(?:(:?-)([^{}]*)|(,,)|\[[@*]\])?\}|\$(\w+|@)")
_UNKNOWN = "UNKNOWN"
_OPERATIONS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.floordiv,
    ast.Mod: operator.mod,
}
_WHOLE_ARRAY = re.compile(r"\$\{(\w+)\[[@*]\]\}\Z")
_ENDS = frozenset({"|", "||", "&&", ";", "2>&1", ">", ">>", "<", "&", "{"})
_KEYWORDS = frozenset(
    {"if", "then", "else", "elif", "fi", "for", "while", "do", "done", "case", "esac", "}", "!"}
)
_DEEPEST = 8


class Line(msgspec.Struct, frozen=True):
    """One logical line: continuations joined; ``depth`` counts the conditions around it; ``body`` a here-
    document."""

    number: int
    text: str
    depth: int = 0
    body: str = ""


class ShellCommand(msgspec.Struct, frozen=True, kw_only=True):
    """One command as its words would be: up to the first pipe or redirection; ``depth`` as of its line."""

    line: int
    words: tuple[str, ...]
    env: dict[str, str] = {}
    depth: int = 0
    body: str = ""


class Script(msgspec.Struct, kw_only=True):
    """A script read with a given environment: its commands in order, and its variables at the end."""

    commands: list[ShellCommand]
    variables: dict[str, str]
    arrays: dict[str, list[str]]


@lru_cache(maxsize=64)
def logical_lines(text: str) -> tuple[Line, ...]:
    """Lines with continuations joined, comments and here-document bodies taken out."""
    found: list[Line] = []
    lines = text.split("\n")
    at = depth = 0
    while at < len(lines):
        start, joined = at, lines[at]
        while joined.endswith("\\") and at + 1 < len(lines) and not joined.lstrip().startswith("#"):
            at += 1
            joined = joined[:-1] + " " + lines[at].lstrip()
        at += 1
        stripped = _without_comment(joined.strip())
        if not stripped:
            continue
        body = ""
        if match := _HEREDOC.search(stripped):
            taken = []
            while at < len(lines) and lines[at].strip() != match[2]:
                taken.append(lines[at])
                at += 1
            at, body = at + 1, "\n".join(taken)
        first = stripped.split(None, 1)[0].rstrip(";")
        depth -= first in {"fi", "done", "esac"}
        found.append(Line(start + 1, stripped, max(depth, 0), body))
        closes = re.search(r"(?:^|[;\s])(fi|done|esac)\s*(?:[;|&<>].*)?$", stripped) and first not in {
            "fi",
            "done",
            "esac",
        }
        depth += first in {"if", "for", "while", "case"} and not closes
    return tuple(found)


def _without_comment(text: str) -> str:
    if text.startswith("#"):
        return ""
    cut = text.find(" # ")
    return (
        text[:cut].rstrip()
        if cut > 0 and text[:cut].count("'") % 2 == 0 and text[:cut].count('"') % 2 == 0
        else text
    )


def read(text: str, environment: Mapping[str, str], fixed: Mapping[str, str] | None = None) -> Script:
    """The commands of a script under ``environment``; ``fixed`` variables keep their value whatever the
    script does.

    A variable that is assigned inside a condition is unsure from there on: words keep its name.
    """
    script = Script(commands=[], variables=dict(environment) | dict(fixed or {}), arrays={})
    _Reader(script, frozenset(fixed or {})).run(logical_lines(text), [])
    return script


class _Reader:
    def __init__(self, script: Script, fixed: frozenset[str]) -> None:
        self.script, self.fixed = script, fixed
        self.functions: dict[str, list[Line]] = {}
        self.depth = 0

    def run(self, lines: Sequence[Line], arguments: list[str]) -> None:
        stream = iter(lines)
        for line in stream:
            if match := _FUNCTION.match(line.text):
                self.functions[match[1]] = list(_until(stream, lambda text: text == "}"))
            elif match := _ARRAY.match(line.text):
                self._array(line, match, stream, arguments)
            else:
                self._line(line, arguments)

    def _array(self, line: Line, match: re.Match[str], stream: Iterator[Line], arguments: list[str]) -> None:
        rest = line.text[match.end() :]
        parts, closing = [rest], _Closing()
        while not closing.in_line(parts[-1]):
            following = next(stream, None)
            if following is None:
                break
            parts.append(following.text)
        inner = " ".join(parts).rstrip().removesuffix(")")
        if line.depth:
            return
        words = self._words(inner, arguments)
        self.script.arrays[match[1]] = (self.script.arrays.get(match[1], []) if match[2] else []) + words

    def _line(self, line: Line, arguments: list[str]) -> None:
        match = _ASSIGN.match(line.text)
        if match and (match[2].startswith("$(") or len(_split(match[2])) <= 1):
            if match[1] not in self.fixed:
                unsure = f"${{{match[1]}}}"
                self.script.variables[match[1]] = unsure if line.depth else self._value(match[2], arguments)
            return
        words = [word for word in self._words(line.text, arguments) if word not in _KEYWORDS]
        env: dict[str, str] = {}
        while words and (assigned := re.match(r"([A-Za-z_]\w*)=(.*)\Z", words[0], re.DOTALL)):
            env[assigned[1]] = assigned[2]
            words = words[1:]
        if not words:
            return
        if words[0] == "shift":
            del arguments[: int(words[1]) if len(words) > 1 and words[1].isdigit() else 1]
            return
        if words[0] in self.functions and self.depth < _DEEPEST:
            saved, self.depth = dict(self.script.variables), self.depth + 1
            self.run(self.functions[words[0]], list(words[1:]))
            self.script.variables, self.depth = saved, self.depth - 1
            return
        command = ShellCommand(
            line=line.number, words=tuple(words), env=env, depth=line.depth, body=line.body
        )
        self.script.commands.append(command)

    def _words(self, text: str, arguments: list[str]) -> list[str]:
        found: list[str] = []
        for word in _split(text):
            if word in _ENDS or re.match(r"\d*[<>]", word):
                break
            if word in ("$@", "${@}", "$*"):
                found += arguments
            elif (array := _WHOLE_ARRAY.match(word)) and array[1] in self.script.arrays:
                found += self.script.arrays[array[1]]
            else:
                found.append(self._expand(word.rstrip(";"), arguments))
        return found

    def _value(self, text: str, arguments: list[str]) -> str:
        if text.startswith("$(("):
            return self._expand(text, arguments)
        words = _split(text) if "$(" not in text else (text,)
        return self._expand(words[0] if words else "", arguments)

    def _expand(self, word: str, arguments: list[str]) -> str:
        for _ in range(16):
            replaced = _VARIABLE.sub(lambda match: self._variable(match, arguments), word)
            replaced = _arithmetic(replaced, self.script.variables) if "$((" in replaced else replaced
            if replaced == word:
                break
            word = replaced
        return word

    def _variable(self, match: re.Match[str], arguments: list[str]) -> str:
        name = match[1] or match[5]
        if name.isdigit():
            at = int(name) - 1
            return arguments[at] if 0 <= at < len(arguments) else match[0]
        value = self.script.variables.get(name)
        if match[2]:
            keep = value is not None and (value != "" or match[2] == "-")
            return _unquote(str(match[3])) if not keep or value is None else value
        if value is None or f"${{{name}" in value or value == f"${name}":
            return " ".join(self.script.arrays[name]) if name in self.script.arrays else match[0]
        return value.lower() if match[4] else value


def _unquote(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text


def _until(stream: Iterator[Line], stops: Callable[[str], bool]) -> Iterator[Line]:
    for line in stream:
        if stops(line.text):
            return
        yield line


@lru_cache(maxsize=4096)
def _split(text: str) -> tuple[str, ...]:
    text = _without_spaces(text)
    try:
        lexer = shlex.shlex(text, posix=True, punctuation_chars=False)
        lexer.whitespace_split, lexer.commenters = True, ""
        return tuple(lexer)
    except ValueError:
        return tuple(text.split())


class _Closing:
    """Finds the bracket that closes an array, line after line."""

    def __init__(self) -> None:
        self.depth, self.quote = 1, ""

    def in_line(self, text: str) -> bool:
        """Whether the closing bracket stands in this next line."""
        for char in text:
            if self.quote:
                self.quote = "" if char == self.quote else self.quote
            elif char in "'\"":
                self.quote = char
            else:
                self.depth += (char == "(") - (char == ")")
                if not self.depth:
                    return True
        return False


def _spans(text: str) -> Iterator[tuple[int, int]]:
    """Where each ``$(( ... ))`` begins and ends, brackets in it counted."""
    at = text.find("$((")
    while at >= 0:
        depth = 0
        for end in range(at + 1, len(text)):
            depth += (text[end] == "(") - (text[end] == ")")
            if not depth:
                yield at, end + 1
                break
        at = text.find("$((", at + 3)


def _without_spaces(text: str) -> str:
    for start, end in reversed(list(_spans(text))):
        text = text[:start] + re.sub(r"\s+", "", text[start:end]) + text[end:]
    return text


def _arithmetic(word: str, variables: Mapping[str, str]) -> str:
    for start, end in reversed(list(_spans(word))):
        value = _evaluate(
            re.sub(r"[A-Za-z_]\w*", lambda name: variables.get(name[0], name[0]), word[start + 3 : end - 2])
        )
        word = word[:start] + (f"${_UNKNOWN}" if value is None else str(value)) + word[end:]
    return word


def _evaluate(expression: str) -> int | None:
    """A whole number from + - * / % over whole numbers, or None for anything else."""
    try:
        return _number(ast.parse(expression.strip(), mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, ZeroDivisionError):
        return None


def _number(node: ast.expr) -> int:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_number(node.operand)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        return _OPERATIONS[type(node.op)](_number(node.left), _number(node.right))
    raise ValueError("not a whole number")
