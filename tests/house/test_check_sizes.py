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

TEST(Suite, works) {
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
        "Suite.works": (37, 3, 0),
        "operator==": (41, 1, 2),
        "arrow": (42, 3, 1),
    }


def output(path: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(tmp_path)
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text)
    return [str(finding) for finding in check_sizes.check([Path(path)])]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (600, []),
        (601, ["src/a/b.py:1: warning: file has 601 lines (at most 600)"]),
        (1201, ["src/a/b.py:1: file has 1201 lines (at most 1200)"]),
    ],
)
def test_a_long_file_warns_then_fails(lines, expected, tmp_path, monkeypatch):
    assert output("src/a/b.py", "\n" * lines, tmp_path, monkeypatch) == expected


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
    assert output("src/a/b.cc", text, tmp_path, monkeypatch) == expected


def test_a_sixth_parameter_fails(tmp_path, monkeypatch):
    text = "int f(int a, int b, int c, int d, int e, std::map<int, int> g) { return a; }\n"
    assert output("src/a/b.cc", text, tmp_path, monkeypatch) == [
        "src/a/b.cc:1: function 'f' has 6 parameters (at most 5)"
    ]


def test_a_long_python_function_warns(tmp_path, monkeypatch):
    text = "def f():\n" + "    pass\n" * 40
    assert output("a.py", text, tmp_path, monkeypatch) == ["a.py:1: warning: function 'f' has 41 lines (at most 40)"]
