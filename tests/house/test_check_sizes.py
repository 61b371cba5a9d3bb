"""script/lib/check_sizes.py and cpp_functions.py: where functions begin and end, and what is too long."""

from pathlib import Path

import check_sizes
import pytest
from cpp_functions import functions

SOURCE = """\
// void comment() { }
#include <map>
#define TWICE(x) \\
  do { x; x; } while (0)
namespace stoker {
namespace {
constexpr int kTable[] = {1, 2, 3};
const std::map<std::string, int> kNames{{"a{", 1}, {"b", 2}};

struct Point {
  int x = 0;
  Point(int a, int b) : x{a}, y_(b) {
    y_ += 1;
  }
  int sum() const { return x + y_; }

 private:
  int y_ = 0;
};

enum class Color : int { red, green };

template <typename T, typename U>
std::map<T, U> merge(const std::map<T, U>& left, std::function<int(int, int)> pick,
                     int depth = f(1, 2)) {
  auto lambda = [&](int a, int b, int c) {
    return a;
  };
  if (depth > 1'000) {
    return {};
  }
  const char* text = R"x( } { )x";
  return left;
}
}  // namespace

TEST(Suite, does_what_it_says) {
  EXPECT_EQ(1, 1);
}

bool operator==(const Point& a, const Point& b) { return true; }
auto arrow(int a) -> int {
  return a;
}
}  // namespace stoker
"""


def test_functions_are_found_with_their_lines_and_parameters():
    found = {
        function.name: (function.first_line, function.lines, function.parameters) for function in functions(SOURCE)
    }
    assert found == {
        "Point": (12, 3, 2),
        "sum": (15, 1, 0),
        "merge": (23, 12, 3),
        "Suite.does_what_it_says": (37, 3, 0),
        "operator==": (41, 1, 2),
        "arrow": (42, 3, 1),
    }


def said(path: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(tmp_path)
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text)
    return [str(finding) for finding in check_sizes.check([Path(path)])]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (400, []),
        (401, ["src/a/b.py:1: warning: file has 401 lines (at most 400)"]),
        (601, ["src/a/b.py:1: file has 601 lines (at most 600)"]),
    ],
)
def test_a_long_file_warns_then_fails(lines, expected, tmp_path, monkeypatch):
    assert said("src/a/b.py", "\n" * lines, tmp_path, monkeypatch) == expected


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (40, []),
        (41, ["src/a/b.cc:2: warning: function 'run' has 41 lines (at most 40)"]),
        (81, ["src/a/b.cc:2: function 'run' has 81 lines (at most 80)"]),
    ],
)
def test_a_long_function_warns_then_fails(lines, expected, tmp_path, monkeypatch):
    text = "\nvoid run() {\n" + "  f();\n" * (lines - 2) + "}\n"
    assert said("src/a/b.cc", text, tmp_path, monkeypatch) == expected


def test_a_sixth_parameter_fails(tmp_path, monkeypatch):
    text = "int f(int a, int b, int c, int d, int e, std::map<int, int> g) { return a; }\n"
    assert said("src/a/b.cc", text, tmp_path, monkeypatch) == [
        "src/a/b.cc:1: function 'f' has 6 parameters (at most 5)"
    ]


def test_a_long_python_function_warns(tmp_path, monkeypatch):
    text = "def f():\n" + "    pass\n" * 40
    assert said("a.py", text, tmp_path, monkeypatch) == ["a.py:1: warning: function 'f' has 41 lines (at most 40)"]


def test_a_crowded_folder_warns_then_fails_and_tests_do_not_count(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("src/a").mkdir(parents=True)

    def folder_of(sources: int) -> list[str]:
        files = [Path(f"src/a/f{n}.cc") for n in range(sources)] + [Path(f"src/a/f{n}_test.cc") for n in range(30)]
        for path in files:
            path.write_text("")
        return [str(finding) for finding in check_sizes.check(files)]

    assert folder_of(15) == []
    assert folder_of(16) == ["src/a:1: warning: folder has 16 sources beside its tests (at most 15)"]
    assert folder_of(26) == ["src/a:1: folder has 26 sources beside its tests (at most 25)"]
