"""Reads the commands and options that --help shows."""

import re


def commands_of(stoker) -> list[str]:
    return re.findall(r"^  ([a-z-]+(?: [a-z]+)?)  ", stoker("--help", code=0).out, re.MULTILINE)


def flags_of(stoker, command: str) -> set[str]:
    """The options in the help of a command: the words before the help of each row."""
    text = stoker(*command.split(), "--help", code=0).out
    heads = re.findall(r"^  (-.+?)(?:  |$)", text, re.MULTILINE)
    return {flag for head in heads for flag in re.findall(r"(?:^|, )(--?[a-z][\w-]*)", head)}
