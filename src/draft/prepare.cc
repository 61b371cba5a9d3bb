#include "draft/prepare.h"

#include <algorithm>
#include <array>

#include "config/schema.h"
#include "script_lint/inner_command.h"
#include "script_lint/rule.h"
#include "stoker/text.h"

namespace stoker::draft {
namespace {

// A valid name of a module or an environment for a job file.
bool is_name_for_job(std::string_view name) {
  return !name.empty() && name.size() <= 256 && name.front() != '-' &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return static_cast<unsigned char>(c) > 0x20 && c != 0x7F; });
}

constexpr std::string_view kStage = "$STOKER_STAGE_DIR";

// On the node-local disk, through a variable: a literal /tmp may have a different purpose.
bool is_node_folder(std::string_view path) { return path.starts_with('$') && is_local_path(path); }

class SetupConverter {
 public:
  SetupConverter(const WordExpander& words, const Unit& unit, JobFileDraft& job_file)
      : words_(words), unit_(unit), job_file_(job_file) {}

  bool convert() {
    bool has_any = false;
    for (const ProgramCall* call : unit_.calls) {
      if (call->context.is_substituted || is_wrapper(*call)) continue;
      if (!convert_call(*call)) return false;
      has_any = true;
    }
    return has_any;
  }

 private:
  // Runs other commands, or reports the result.
  static bool is_wrapper(const ProgramCall& call) {
    const bool is_shell = (call.program == "bash" || call.program == "sh") &&
                          (call.words.empty() || is_one_of(call.words[0], {"-c", "-lc", "-ec"}));
    return is_shell || is_launcher(call.program) || is_one_of(call.program, {"exit", "true", ":", "time"});
  }

  bool convert_call(const ProgramCall& call) {
    const std::string& program = call.program;
    if (program == "module" || program == "ml") return convert_module(call);
    if (program == "conda" || program == "mamba" || program == "micromamba") return convert_conda(call);
    if (program == "source" || program == ".") return convert_source(call);
    if (program == "eval")
      return !call.words.empty() && (call.words[0].find("conda") != std::string::npos ||
                                     call.words[0].find("mamba") != std::string::npos);
    if (program == "virtualenv" || is_venv_module(call)) return convert_venv_creation(call);
    if (program == "pip" || program == "pip3" ||
        (is_python(program) && call.option("-m") == std::optional<std::string>("pip")))
      return convert_pip(call);
    if (program == "export") return convert_exports(call);
    if (program == "mkdir") return convert_mkdir(call);
    if (program == "cd") return convert_cd(call);
    if (is_one_of(program, {"tar", "unzip"})) return convert_archive(call);
    if (is_one_of(program, {"cp", "rsync"})) return convert_copy(call);
    return false;
  }

  void mark_unconverted(std::string what, std::string why) {
    job_file_.unconverted.push_back({unit_.line, std::move(what), std::move(why)});
  }

  static bool is_venv_module(const ProgramCall& call) {
    const auto module = is_python(call.program) ? call.option("-m") : std::nullopt;
    return module && (*module == "venv" || *module == "virtualenv");
  }

  bool convert_module(const ProgramCall& call) {
    std::vector<std::string> names = call.words;
    std::erase_if(names, [](const std::string& word) { return word.starts_with('-') && word.size() > 1; });
    std::string verb = "load";
    if (call.program == "module" || (!names.empty() && is_one_of(names[0], {"purge", "list", "load"}))) {
      if (names.empty()) return true;
      verb = names.front();
      names.erase(names.begin());
    }
    if (is_one_of(verb, {"purge", "reset", "list", "avail", "spider"}))
      return true;  // ranks start without modules
    if (!is_one_of(verb, {"load", "add"})) return false;
    for (const std::string& name : names) {
      const bool is_name =
          name.find_first_of("$`*\"'") == std::string::npos && is_name_for_job(name) && !placeholder_in(name);
      if (is_name) {
        if (std::find(job_file_.modules.begin(), job_file_.modules.end(), name) == job_file_.modules.end())
          job_file_.modules.push_back(name);
      } else {
        mark_unconverted(format("module load {}", printable(name)),
                         "is not a module name yet: environment.modules");
      }
    }
    return true;
  }

  bool convert_conda(const ProgramCall& call) {
    if (call.words.empty()) return false;
    if (is_one_of(call.words[0], {"init", "info", "list"})) return true;
    if (call.words[0] == "deactivate") return true;
    if (call.words[0] != "activate" || call.typed.size() != 2) return false;
    const auto name = words_.path(*call.typed[1]);
    if (!name || job_file_.conda || !is_name_for_job(*name)) return false;
    job_file_.conda = *name;
    return true;
  }

  bool convert_source(const ProgramCall& call) {
    if (call.typed.size() != 1 || call.words.size() != 1) return false;
    const std::string& file = call.words[0];
    if (file.ends_with("conda.sh") || file.ends_with("mamba.sh")) return true;
    if (is_one_of(Path(file).filename().string(), {".bashrc", ".bash_profile", ".profile"})) {
      mark_unconverted(format("source {}", printable(file)),
                       "is not read: put the settings for ranks into environment.variables");
      return true;
    }
    constexpr std::string_view kActivate = "/bin/activate";
    if (!file.ends_with(kActivate)) return false;
    const std::string folder = file.substr(0, file.size() - kActivate.size());
    if (!job_file_.created_venv.empty() && folder == job_file_.created_venv) return true;
    if (is_local_path(folder) || job_file_.venv) return false;
    auto path = words_.path(*call.typed[0]);
    if (!path) return false;
    path->resize(path->size() - kActivate.size());
    job_file_.venv = resolve_path(call, *path);
    return true;
  }

  bool convert_venv_creation(const ProgramCall& call) {
    if (call.words.empty() || call.words.back().starts_with('-')) return false;
    if (!job_file_.created_venv.empty() && job_file_.created_venv != call.words.back()) return false;
    job_file_.created_venv = call.words.back();
    return true;
  }

  // Packages of the environment that the job creates.
  bool convert_pip(const ProgramCall& call) {
    if (job_file_.created_venv.empty()) return false;
    bool is_install = false;
    for (std::size_t i = 0; i < call.typed.size(); ++i) {
      const auto word = words_.path(*call.typed[i]);
      if (!word) return false;
      const bool has_next = i + 1 < call.typed.size();
      if (!is_install) {
        is_install = *word == "install";
        if (!is_install && *word != "-m" && *word != "pip" && !word->starts_with("-")) return false;
      } else if (is_one_of(*word, {"-r", "--requirement", "-f", "--find-links"}) && has_next) {
        const auto value = words_.path(*call.typed[++i]);
        if (!value) return false;
        if (word->starts_with("-r") || *word == "--requirement")
          job_file_.requirement_files.push_back(resolve_path(call, *value));
        else
          job_file_.wheelhouse = resolve_path(call, *value);
      } else if (word->starts_with("-")) {
        if (!is_one_of(*word, {"--upgrade", "-U", "--no-index", "--no-cache-dir", "-q", "--quiet", "--user",
                               "--no-download", "--prefer-binary", "--no-deps"}))
          return false;
      } else if (word->find('/') != std::string::npos || *word == ".") {
        return false;  // a local package or a URL
      } else if (!is_one_of(*word, {"pip", "setuptools", "wheel"})) {
        job_file_.packages.push_back(*word);
      }
    }
    return is_install;
  }

  bool convert_exports(const ProgramCall& call) {
    if (call.command->assignments.empty() || !call.typed.empty()) return false;
    for (const bash::Assignment& assignment : call.command->assignments) {
      if (is_set_by_stoker(assignment.name)) {
        mark_unconverted(format("export {}", assignment.name), "is set by Stoker for every rank");
        continue;
      }
      const auto value = words_.path(assignment.value);
      const bool is_plain = !assignment.appends && !assignment.is_array &&
                            !assignment.name.starts_with("STOKER_") && !assignment.name.starts_with("SLURM_");
      if (assignment.name == "OMP_NUM_THREADS" && !value)
        continue;  // Stoker sets it to the cores of the rank
      std::uint64_t port = 0;
      const bool is_no_port = assignment.name == "MASTER_PORT" && value &&
                              (!parse_number(*value, &port) || port < 1 || port > 65535);
      if (!value || !is_plain || is_no_port || !config::is_name(assignment.name)) return false;
      std::erase_if(job_file_.variables, [&](const auto& each) { return each.first == assignment.name; });
      job_file_.variables.emplace_back(assignment.name, *value);
    }
    return true;
  }

  bool convert_mkdir(const ProgramCall& call) {
    return std::all_of(call.words.begin(), call.words.end(),
                       [](const std::string& word) { return word.starts_with('-') || is_local_path(word); });
  }

  bool convert_cd(const ProgramCall& call) {
    if (call.typed.size() != 1 || call.words.size() != 1 || is_local_path(call.words[0])) return false;
    const auto path = words_.path(*call.typed[0]);
    if (!path || job_file_.working_directory) return false;
    if (*path != ".") job_file_.working_directory = *path;
    return true;
  }

  // Relative paths start in the script's current folder.
  std::string resolve_path(const ProgramCall& call, const std::string& path) const {
    const bool is_here = path.starts_with('/') || call.directory.empty() || !job_file_.working_directory;
    return is_here ? path : (Path(*job_file_.working_directory) / path).lexically_normal().string();
  }

  bool is_from_here(const ProgramCall& call, const std::string& path) const {
    return path.starts_with('/') || call.directory.empty() ||
           call.directory.find("SLURM_SUBMIT_DIR") != std::string::npos || job_file_.working_directory;
  }

  // "tar xf a.tar -C $SLURM_TMPDIR/data": staged with the other archives; the path is rewritten.
  bool convert_archive(const ProgramCall& call) {
    std::string folder = call.directory;
    std::optional<std::string> archive;
    bool extracts = call.program == "unzip";
    for (std::size_t i = 0; i < call.words.size(); ++i) {
      const std::string& word = call.words[i];
      const bool has_next = i + 1 < call.words.size();
      if (is_one_of(word, {"-C", "--directory", "-d"}) && has_next) {
        folder = call.words[++i];
      } else if (word.starts_with("--directory=")) {
        folder = word.substr(12);
      } else if (call.program == "tar" && i == 0 && word.find('/') == std::string::npos &&
                 !word.starts_with("--")) {
        extracts = word.find('x') != std::string::npos;
        if (word.find_first_not_of("-xzjJavfmpo") != std::string::npos) return false;
      } else if (is_one_of(word, {"-f", "--file", "-q", "-o", "-x", "-z", "-v", "-xf", "--no-same-owner"})) {
        extracts = extracts || word.starts_with("-x");
      } else if (word.starts_with('-') || archive) {
        return false;  // a partial or unusual extraction
      } else {
        archive = words_.path(*call.typed[i]);
        if (!archive || !is_from_here(call, *archive)) return false;
      }
    }
    if (!extracts || !archive || !is_node_folder(folder)) return false;
    job_file_.unpack.push_back(resolve_path(call, *archive));
    job_file_.path_rewrites.emplace_back(folder, kStage);
    return true;
  }

  bool convert_copy(const ProgramCall& call) {
    std::vector<std::size_t> operands;
    for (std::size_t i = 0; i < call.words.size(); ++i) {
      const std::string& word = call.words[i];
      if (!word.starts_with('-')) {
        operands.push_back(i);
      } else if (word.starts_with("--") ? !is_one_of(word, {"--archive", "--verbose", "--progress",
                                                            "--recursive", "--partial", "--quiet"})
                                        : word.find_first_not_of("-avzrRpfhuqPtL") != std::string::npos) {
        return false;
      } else if (call.program == "rsync" && !word.starts_with("--") && word.find('R') != std::string::npos) {
        return false;  // keeps the parent folders
      }
    }
    if (operands.size() != 2) return false;
    const std::string& from = call.words[operands[0]];
    std::string to = call.words[operands[1]];
    if (to == ".") to = call.directory;
    if (is_node_folder(to) && !is_local_path(from))
      return convert_stage_in(call, *call.typed[operands[0]], to);
    if (is_local_path(from) && !is_local_path(to)) return convert_stage_out(from, to);
    return false;
  }

  bool convert_stage_in(const ProgramCall& call, const bash::Word& word, std::string to) {
    auto source = words_.path(word);
    if (!source || source->find(':') != std::string::npos || !is_from_here(call, *source)) return false;
    const bool has_contents = source->ends_with('/') || source->ends_with("/.");
    while (source->size() > 1 && (source->ends_with('/') || source->ends_with("/.")))
      source->resize(source->size() - (source->ends_with('/') ? 1 : 2));
    const std::string base = Path(*source).filename().string();
    if (base.empty() || base == "." || base == "..") return false;
    const bool is_folder = to.ends_with('/') || to == "$SLURM_TMPDIR" || to == "$TMPDIR" || to == "/tmp";
    while (to.size() > 1 && to.ends_with('/')) to.pop_back();
    job_file_.copy.push_back(resolve_path(call, *source));
    const bool is_inside = is_folder && !(has_contents && call.program == "rsync");
    job_file_.path_rewrites.emplace_back(is_inside ? format("{}/{}", to, base) : to,
                                         format("{}/{}", kStage, base));
    return true;
  }

  bool convert_stage_out(const std::string& from, const std::string& to) {
    for (std::string_view place : {"$SLURM_TMPDIR/", "$TMPDIR/"}) {
      if (!from.starts_with(place)) continue;
      std::string name = from.substr(place.size());
      while (name.ends_with('/')) name.pop_back();
      if (name.empty() || name.find_first_of("$*?[") != std::string::npos || name.starts_with('.'))
        return false;
      job_file_.stage_out.push_back(name);
      mark_unconverted(format("{} to {}", name, printable(to)),
                       "is copied to the run: attempts/1/back/node-0000");
      return true;
    }
    return false;
  }

  const WordExpander& words_;
  const Unit& unit_;
  JobFileDraft& job_file_;
};

}  // namespace

bool convert_unit(const WordExpander& words, const Unit& unit, JobFileDraft& job_file) {
  if (!unit.is_simple) return false;
  const bool has_settings =
      std::any_of(unit.settings.begin(), unit.settings.end(),
                  [](const VariableSetting* each) { return !each->is_command_scoped && !each->is_exported; });
  if (unit.calls.empty()) {
    // MASTER_ADDR=$(...) alone: Stoker sets it for the ranks.
    return !unit.settings.empty() &&
           std::all_of(unit.settings.begin(), unit.settings.end(),
                       [](const VariableSetting* each) { return is_set_by_stoker(each->name); });
  }
  if (has_settings) {
    const bool is_known = std::all_of(
        unit.settings.begin(), unit.settings.end(),
        [](const VariableSetting* each) { return each->is_exported || is_set_by_stoker(each->name); });
    return is_known;
  }
  JobFileDraft before = job_file;
  if (SetupConverter(words, unit, job_file).convert()) return true;
  job_file = std::move(before);
  return false;
}

}  // namespace stoker::draft
