"""Our declarations of gloo are not the real ones: our objects must not define any of its tables, types or functions."""

import subprocess

from conftest import BIN


def test_programs_define_no_gloo_symbols():
    for program in ("stoker-train", "torch-steps"):
        symbols = subprocess.run(["nm", "-C", BIN / program], check=True, capture_output=True, text=True).stdout
        assert "ProcessGroupGloo" in symbols, "wrong file"
        ours = [line for line in symbols.splitlines() if "gloo::" in line.replace("stoker::", "")]
        # Allowed: functions of c10d that mention gloo types in shared pointers' templates.
        forbidden = ("vtable for gloo", "typeinfo for gloo", "typeinfo name for gloo", "gloo::Context::", "GlooStore")
        assert [line for line in ours if any(word in line for word in forbidden)] == []
