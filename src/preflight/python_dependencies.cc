#include "preflight/python_dependencies.h"

#include <algorithm>

#include "base/file.h"
#include "job/profile_settings.h"
#include "stoker/text.h"

namespace stoker::preflight {
namespace {

// Arguments: script or "", requirements or "", wheelhouse or "". Prints tab-separated lines: kind, line
// number, name, detail. Uses only the standard library, so any Python can run it.
constexpr const char* kProgram = R"python(
import ast, importlib.util, os, re, sys, zipfile
script, requirements, wheelhouse = sys.argv[1:4]

def normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()

def numbers(version):
    return tuple(int(part) for part in re.findall(r"\d+", version.split("+")[0])[:4])

def padded(left, right):
    size = max(len(left), len(right))
    return left + (0,) * (size - len(left)), right + (0,) * (size - len(right))

def fits(version, wanted):
    for piece in filter(None, (part.strip() for part in wanted.split(","))):
        found = re.match(r"(===|==|~=|!=|<=|>=|<|>)\s*([\w.*+!-]+)$", piece)
        if not found:
            return True
        operator, value = found.groups()
        if value.endswith(".*"):
            prefix = numbers(value)
            same = numbers(version)[: len(prefix)] == prefix
            if same == (operator == "!="):
                return False
            continue
        have, want = padded(numbers(version), numbers(value))
        good = {"==": have == want, "===": version == value, "!=": have != want, "<=": have <= want, ">=": have >= want,
                "<": have < want, ">": have > want,
                "~=": have >= want and have[: len(numbers(value)) - 1] == numbers(value)[:-1]}[operator]
        if not good:
            return False
    return True

def suits(name):
    # Wheels for another Python or another kind of machine are of no use; which glibc is pip's question.
    python, abi, platform = name[:-4].split("-")[-3:]
    ours = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    is_python = any(tag in (ours, "py3", f"py{ours[2:]}") or (abi == "abi3" and re.match(r"cp3\d+$", tag)
                    and int(tag[3:]) <= sys.version_info[1]) for tag in python.split("."))
    machine = os.uname().machine
    return is_python and any(tag == "any" or tag.endswith(machine) for tag in platform.split("."))

wheels = {}
provided = set()
if wheelhouse:
    for name in sorted(os.listdir(wheelhouse)):
        if name.endswith(".whl") and name.count("-") >= 4:
            wheels.setdefault(normal(name.split("-")[0]), []).append((name.split("-")[1], name))
        elif name.endswith(".tar.gz") and "-" in name:
            stem, version = name[:-7].rsplit("-", 1)
            wheels.setdefault(normal(stem), []).append((version, name))

def names_in(path):
    try:
        with zipfile.ZipFile(path) as wheel:
            for entry in wheel.namelist():
                top = entry.split("/")[0]
                if "." not in top:
                    provided.add(top)
                elif "/" not in entry and top.endswith((".py", ".so")):
                    provided.add(top.split(".")[0])
    except (OSError, zipfile.BadZipFile):
        pass

if requirements and wheelhouse:
    for number, line in enumerate(open(requirements, encoding="utf-8", errors="replace"), 1):
        line = line.split(" #")[0].split(";")[0].strip()
        found = re.match(r"([A-Za-z0-9][\w.-]*)\s*(\[[^\]]*\])?\s*(.*)$", line)
        if not line or line.startswith(("#", "-")) or "@" in line or not found:
            continue
        name, _, wanted = found.groups()
        there = wheels.get(normal(name), [])
        good = [file for version, file in there if fits(version, wanted) and (not file.endswith(".whl") or suits(file))]
        if not good:
            detail = ", ".join(file for _, file in there[:3])
            print("wheel", number, line, detail, sep="\t")
    for files in wheels.values():
        for _, file in files:
            if file.endswith(".whl"):
                names_in(os.path.join(wheelhouse, file))

if script:
    source = open(script, "rb").read(4 << 20)
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        print("syntax", error.lineno or 0, error.msg, "", sep="\t")
        sys.exit()
    guarded = set()
    for node in ast.walk(tree):
        # What a script tries to import it can do without. Type checkers alone execute TYPE_CHECKING.
        if isinstance(node, ast.Try) or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)):
            guarded.update(id(inner) for statement in node.body for inner in ast.walk(statement))

    def executed(body):
        # Statements that every run of the script executes.
        for node in body:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                yield node
            elif isinstance(node, ast.With) or (isinstance(node, ast.If) and "'__main__'" in ast.dump(node.test)):
                yield from executed(node.body)

    changes_path = b"sys.path" in source or b"addsitedir" in source or b"sys.modules" in source
    certain = set() if changes_path else {id(node) for node in executed(tree.body)}
    sys.path[0] = os.path.dirname(os.path.abspath(script))
    seen = set()
    for node in ast.walk(tree):
        if id(node) in guarded:
            continue
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names = [node.module]
        else:
            continue
        for name in names:
            top = name.split(".")[0]
            if top in seen or top in provided:
                continue
            seen.add(top)
            try:
                there = importlib.util.find_spec(top) is not None
            except (ImportError, ValueError):
                there = top in sys.modules
            if not there:
                print("import", node.lineno, top, "certain" if id(node) in certain else "", sep="\t")
)python";

// "train.py:3" and the error.
Finding finding_of(const job::Job& job, const std::string& script,
                   const std::vector<std::string_view>& columns) {
  const std::string kind(columns[0]);
  const std::string name = printable(columns[2]);
  if (kind == "wheel") {
    const std::string detail = printable(columns[3]);
    const std::string wheelhouse = job.environment.wheelhouse->string();
    return {.rule = "no-wheel",
            .level = Level::job,
            .what = detail.empty()
                        ? message("environment.wheelhouse: no wheel for '{}'", name)
                        : message("environment.wheelhouse: no wheel for '{}' (found {})", name, detail),
            .evidence = {{.where = format("{}:{}", printable(job.environment.venv->string()), columns[1]),
                          .text = ""}},
            .cure = format("pip download -d {} {}", shell_quote(wheelhouse), shell_quote(columns[2]))};
  }
  const bool is_syntax = kind == "syntax";
  // An environment that each node builds may get the module with another package.
  const bool is_fatal = is_syntax || (columns[3] == "certain" && !creates_venv(job.environment));
  return {.rule = is_syntax ? "bad-script" : "no-import",
          .level = is_fatal ? Level::job : Level::advice,
          .what = is_syntax ? message("run: Python cannot parse it: {}", name)
                            : message("run: imports '{}', which is missing in this environment", name),
          .evidence = {{.where = format("{}:{}", printable(script), columns[1]), .text = ""}},
          .cure = is_syntax ? Message()
                            : message("python -m pip install {}, or the package with that module",
                                      shell_quote(columns[2]))};
}

}  // namespace

std::string python_script(const std::vector<std::string>& command) {
  if (command.empty() || !Path(command[0]).filename().string().starts_with("python")) return "";
  for (std::size_t i = 1; i < command.size(); ++i) {
    const std::string& word = command[i];
    if (word == "-m" || word == "-c" || word == "-") return "";
    if (word == "-W" || word == "-X") {
      ++i;
    } else if (word.front() != '-') {
      return word;
    }
  }
  return "";
}

namespace {

// The words of the command; of shell code only if it is one command.
std::vector<std::string> plain_command(const job::RunCommand& command) {
  if (!command.is_shell) return command.arguments;
  std::vector<std::string> words;
  const std::string_view text = trim(command.arguments.back());
  if (text.find_first_of(";&|\n<>()`'\"\\") != std::string_view::npos) return words;
  for (std::string_view word : split(text, ' ')) {
    if (!word.empty() && !(words.empty() && word == "exec")) words.emplace_back(word);
  }
  return words;
}

}  // namespace

bool creates_venv(const job::Environment& environment) {
  return environment.venv && path_exists(*environment.venv) && !folder_exists(*environment.venv);
}

std::vector<Finding> check_python_dependencies(const job::Job& job, const Environment& environment,
                                               Deadline deadline) {
  // An image has its own Python.
  const bool has_command = job.command && !job.environment.container;
  const std::vector<std::string> words =
      has_command ? job::split_profile_tool(plain_command(*job.command)).command : std::vector<std::string>();
  const std::string script = python_script(words);
  const bool is_made = creates_venv(job.environment);
  const bool has_wheelhouse = is_made && job.environment.wheelhouse;
  const bool has_script = !script.empty() && path_exists(job.working_directory / script);
  // Without a wheelhouse the packages from pip are unknown, and so are the available modules.
  const bool judges_script = has_script && (!is_made || has_wheelhouse);
  if (!judges_script && !has_wheelhouse) return {};
  Command command;
  command.argv = {has_script && !is_made ? words[0] : "python3",
                  "-c",
                  kProgram,
                  judges_script ? (job.working_directory / script).string() : "",
                  is_made ? job.environment.venv->string() : "",
                  has_wheelhouse ? job.environment.wheelhouse->string() : ""};
  command.environment = environment;
  command.directory = job.working_directory;
  const auto done = run_program(command, deadline);
  if (!done.ok() || !done->exit.ok()) return {};
  std::vector<Finding> findings;
  for (std::string_view line : split(done->out, '\n')) {
    const auto columns = split(line, '\t');
    if (columns.size() == 4) findings.push_back(finding_of(job, script, columns));
  }
  return findings;
}

}  // namespace stoker::preflight
