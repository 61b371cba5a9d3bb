#include "script_lint/script.h"

#include <algorithm>
#include <array>

#include "bash/parser.h"
#include "script_lint/inner_command.h"
#include "script_lint/walker.h"
#include "slurm/script/user_script.h"
#include "stoker/text.h"

namespace stoker::script_lint {
namespace {

// "bash" of "#!/usr/bin/env -S bash -l".
std::string interpreter_of(std::string_view text) {
  if (!text.starts_with("#!")) return "";
  for (std::string_view word : split(trim(text.substr(2, text.find('\n') - 2)), ' ')) {
    const std::string_view base = word.substr(word.rfind('/') + 1);
    if (!base.empty() && base != "env" && !base.starts_with('-')) return std::string(base);
  }
  return "";
}

// Where sbatch stops reading options: the first line that is neither blank nor a comment.
std::size_t end_of_header(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    const std::size_t first = line.find_first_not_of(" \t\v\f\r");
    if (first != std::string_view::npos && line[first] != '#') return at + first;
    at = end + 1;
  }
  return text.size();
}

// The comments in the header of a script in another language.
std::vector<bash::Comment> header_comments(std::string_view text, std::size_t end) {
  std::vector<bash::Comment> comments;
  for (std::size_t at = 0; at < end;) {
    const std::size_t line_end = std::min(text.find('\n', at), text.size());
    if (text[at] == '#') comments.push_back({{at, line_end}});
    at = line_end + 1;
  }
  return comments;
}

std::string lower_without_comments(const Script& script) {
  std::string lower;
  std::size_t from = 0;
  for (const bash::Comment& comment : script.tree.comments) {
    if (comment.span.begin > from) lower += to_lower(script.at({from, comment.span.begin}));
    lower += '\0';
    from = std::max(from, comment.span.end);
  }
  return lower + to_lower(script.at({from, script.text.size()}));
}

}  // namespace

bool ProgramCall::has(std::string_view word) const {
  return std::any_of(words.begin(), words.end(), [&](const std::string& each) {
    return each == word || (each.starts_with(word) && each.substr(word.size()).starts_with('='));
  });
}

std::optional<std::string> ProgramCall::option(std::string_view name) const {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == name) return i + 1 < words.size() ? words[i + 1] : "";
    if (words[i].starts_with(name) && words[i].substr(name.size()).starts_with('='))
      return words[i].substr(name.size() + 1);
  }
  return std::nullopt;
}

bool Script::mentions(std::string_view letters) const {
  return lower.find(to_lower(letters)) != std::string::npos;
}

const ProgramCall* Script::launcher_of(const ProgramCall& call) const {
  return call.context.launcher ? &calls[*call.context.launcher] : nullptr;
}

bash::Span Script::line_of(std::size_t offset) const {
  offset = std::min(offset, text.size());
  const std::size_t before = offset == 0 ? std::string::npos : text.rfind('\n', offset - 1);
  return {before == std::string::npos ? 0 : before + 1, std::min(text.find('\n', offset), text.size())};
}

std::unique_ptr<Script> read_script(const std::string& name, std::string text) {
  auto script = std::make_unique<Script>();
  script->text = std::move(text);
  script->source = std::make_shared<config::Source>(config::Layer::file, printable(name), script->text);
  script->interpreter = interpreter_of(script->text);
  constexpr std::array<std::string_view, 5> kShells = {"bash", "sh", "dash", "ksh", ""};
  script->is_shell = std::find(kShells.begin(), kShells.end(), script->interpreter) != kShells.end();
  script->first_command = end_of_header(script->text);
  if (script->is_shell) {
    script->tree = bash::parse(script->text);
  } else {
    script->tree.comments = header_comments(script->text, script->first_command);
  }
  std::sort(script->tree.comments.begin(), script->tree.comments.end(),
            [](const bash::Comment& a, const bash::Comment& b) { return a.span.begin < b.span.begin; });
  script->lower = lower_without_comments(*script);
  script->request = read_request(script->text, script->tree.comments, script->first_command);
  Walker(*script).walk();
  script->names = NameIndex(*script);
  return script;
}

std::string flatten(const bash::Word& word, std::string_view text) {
  std::string out;
  for (const bash::WordPiece& piece : word.pieces) {
    if (piece.kind == bash::PieceKind::literal) {
      out += piece.text;
    } else if (piece.kind == bash::PieceKind::variable && piece.operation.empty()) {
      out += "$" + piece.text;
    } else {
      out += text.substr(piece.span.begin, piece.span.end - piece.span.begin);
    }
  }
  return out;
}

bool is_python(std::string_view program) {
  if (!program.starts_with("python")) return false;
  return program.find_first_not_of("0123456789.", 6) == std::string_view::npos;
}

bool is_agent(const ProgramCall& call) {
  if (call.program == "torchrun" || call.program == "deepspeed" || call.program == "horovodrun") return true;
  if (call.program == "accelerate") return !call.words.empty() && call.words[0] == "launch";
  if (!is_python(call.program)) return false;
  const auto module = call.option("-m");
  return module && (module->starts_with("torch.distributed.") || *module == "accelerate.commands.launch" ||
                    *module == "deepspeed.launcher.runner");
}

bool is_work(const ProgramCall& call) {
  if (is_launcher(call.program) || is_agent(call)) return true;
  constexpr std::array<std::string_view, 10> kPrograms = {
      "Rscript", "julia", "java", "matlab", "lmp", "gmx_mpi", "gmx", "lightning", "snakemake", "nextflow"};
  if (std::find(kPrograms.begin(), kPrograms.end(), call.program) != kPrograms.end()) return true;
  if (is_python(call.program)) {
    const auto module = call.option("-m");
    if (module)
      return *module != "pip" && *module != "venv" && *module != "virtualenv" && *module != "ensurepip";
    return std::any_of(call.words.begin(), call.words.end(),
                       [](const std::string& word) { return word.ends_with(".py"); });
  }
  return call.program_word != nullptr && !call.program_word->pieces.empty() &&
         call.program_word->pieces[0].text.starts_with("./") && !call.program.ends_with(".sh");
}

}  // namespace stoker::script_lint
