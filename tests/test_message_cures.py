"""Commands, options and job file keys in the texts of the sources exist: users paste them."""

import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import yaml
from conftest import REPOSITORY
from cures import KEYS, SECTIONS

sys.path.insert(0, str(REPOSITORY / "script/lib"))
import check_messages

COMMANDS = {path.stem.replace("-", " ", 1) for path in (REPOSITORY / "docs/commands").glob("*.md")}
COMMAND = re.compile(r"\bstoker ([a-z-]+(?: [a-z]+)?)((?: (?:[^\s,;:()`'\"]+|\"[^\"]*\"|'[^']*'))*)")
MAPPING = re.compile(r"\b([a-z_]+): (\{[a-z_]+: (?:[^{}]|\{[^{}]*\})*\}|\[[^\[\]]*\])")


def texts() -> list[tuple[str, str]]:
    found = []
    for path in sorted((REPOSITORY / "src").rglob("*.cc")):
        if path.stem.endswith("_test"):
            continue
        for literal in check_messages.literals_of(path.read_text()):
            text = literal.text.replace("{{", "{").replace("}}", "}")
            if "stoker " in text or MAPPING.search(text):
                found.append((path.relative_to(REPOSITORY).as_posix(), text))
    return found


@cache
def options_of(stoker_path: Path, command: str) -> set[str]:
    done = subprocess.run([stoker_path, *command.split(), "--help"], capture_output=True, text=True, check=True)
    return set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", done.stdout, re.IGNORECASE))


def command_of(words: str) -> str | None:
    """The command at the start of the words: "checkpoint list"; None for prose."""
    first, *_ = words.split()
    return words if words in COMMANDS else first if first in COMMANDS else None


def is_key(path: str) -> bool:
    return path in KEYS or any(re.fullmatch(key.replace(".", r"\.").replace("*", r"[^.]+"), path) for key in KEYS)


def keys_of(value: object, path: str) -> list[str]:
    if not isinstance(value, dict):
        return [path]
    return [key for name, inner in value.items() for key in keys_of(inner, f"{path}.{name}")]


def test_options_in_texts_exist(stoker):
    wrong = []
    for path, text in texts():
        for match in COMMAND.finditer(text):
            command = command_of(match[1])
            if command is None:
                continue
            rest = match[1][len(command) :] + match[2]
            # What follows `--` or the name of a job is for a different program.
            for option in re.findall(r"(?<= )--[a-z][\w-]*", rest.split(" -- ")[0]):
                if option not in options_of(stoker.path, command):
                    wrong.append(f"{path}: stoker {command} has no {option}: {text[:160]}")
    assert wrong == []


def test_groups_of_commands_in_texts_exist():
    groups = {command.split()[0] for command in COMMANDS if " " in command}
    wrong = []
    for path, text in texts():
        for match in COMMAND.finditer(text):
            first, *rest = match[1].split()
            is_wrong = first in groups - COMMANDS and rest and match[1] not in COMMANDS
            if is_wrong:
                wrong.append(f"{path}: no command stoker {match[1]}: {text[:160]}")
    assert wrong == []


def test_job_file_keys_in_texts_exist():
    wrong = []
    checked = 0
    for path, text in texts():
        for match in MAPPING.finditer(text):
            if match[1] not in SECTIONS or "\n" in text:
                continue
            source = re.sub(r"\{\d?\}|\{\w+\}|\.\.\.", "x", f"{match[1]}: {match[2]}")
            try:
                value = yaml.safe_load(source)
            except yaml.YAMLError:
                wrong.append(f"{path}: no YAML: {source}")
                continue
            checked += 1
            for key in keys_of(value[match[1]], match[1]):
                if not is_key(key):
                    wrong.append(f"{path}: no key {key}: {text[:160]}")
    assert checked > 20
    assert wrong == []
