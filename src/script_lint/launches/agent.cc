#include "script_lint/launches/agent.h"

#include <algorithm>
#include <cctype>
#include <sys/stat.h>

#include "base/file.h"
#include "stoker/bytes.h"
#include "stoker/text.h"

namespace stoker::script_lint {
namespace {

struct ExpandedWord {
  std::string text;
  bool is_unknown = false;  // a variable without a known value
};

void add_pieces(std::string text, std::vector<ExpandedWord>& words) {
  for (char& letter : text) {
    if (letter == '\n' || letter == '\t' || letter == '\\') letter = ' ';
  }
  for (std::string_view part : split(text, ' ')) {
    if (!part.empty()) words.push_back({std::string(part), false});
  }
}

// "${ARGS[@]}": the elements of the array, if the script sets it once.
bool add_array(const bash::WordPiece& piece, const AgentContext& context, std::vector<ExpandedWord>& words) {
  const VariableSetting* found = nullptr;
  for (std::size_t index : context.script.names.settings_of(piece.text)) {
    const VariableSetting& setting = context.script.settings[index];
    if (found != nullptr || !setting.assignment->is_array || setting.assignment->appends) return false;
    found = &setting;
  }
  if (found == nullptr) return false;
  for (const bash::Word& element : found->assignment->elements)
    words.push_back(
        {expand_variables(flatten(element, context.script.text), context.script.variables), false});
  return true;
}

// The words of the call; an unquoted variable may hold several.
std::vector<ExpandedWord> expanded_words(const ProgramCall& call, const AgentContext& context) {
  std::vector<ExpandedWord> words;
  for (std::size_t i = 0; i < call.words.size(); ++i) {
    std::string text = call.words[i];
    if (context.outer != nullptr) text = expand_variables(text, *context.outer);
    const bash::Word& typed = *call.typed[i];
    const bash::WordPiece* variable = only_variable(typed);
    if (variable == nullptr) {
      words.push_back({std::move(text), false});
      continue;
    }
    const bash::WordPiece& piece = *variable;
    const bool is_array = piece.operation == "[@]" || piece.operation == "[*]";
    if (is_array && add_array(piece, context, words)) continue;
    if (text.starts_with('$')) {
      words.push_back({std::move(text), true});
    } else if (piece.is_quoted) {
      words.push_back({std::move(text), false});
    } else {
      add_pieces(std::move(text), words);
    }
  }
  return words;
}

bool is_training_script(const std::string& word) {
  return !word.starts_with('-') && (word.ends_with(".py") || word.find(".py ") != std::string::npos);
}

// An option of torchrun without a value.
bool is_flag(const std::string& word) {
  return word == "--standalone" || word == "--run-path" || word == "--run_path" ||
         word.find('=') != std::string::npos;
}

// Divides the words into the agent's options and the training script.
void divide(const std::vector<ExpandedWord>& words, std::size_t first, Agent& agent) {
  std::size_t at = first;
  for (; at < words.size(); ++at) {
    const std::string& word = words[at].text;
    const bool is_module =
        word == "-m" || word == "--module" || word == "--no_python" || word == "--no-python";
    if (is_module || is_training_script(word)) break;
    const bool is_value = at > first && words[at - 1].text.starts_with('-') && !is_flag(words[at - 1].text);
    if (words[at].is_unknown && !is_value) agent.is_complete = false;
    const bool is_program = agent.kind == AgentKind::torchrun && !is_value && !word.starts_with('-') &&
                            word.find('$') == std::string::npos;
    if (is_program) break;
    agent.options.push_back(word);
  }
  for (; at < words.size(); ++at) agent.program.push_back(words[at].text);
  // Without a recognizable script its options look like the agent's.
  if (agent.program.empty()) agent.is_complete = false;
}

OptionText first_of(const Agent& agent, std::initializer_list<std::string_view> names) {
  return option_value(agent.options, names);
}

bool has_flag(const Agent& agent, std::string_view name) {
  return std::find(agent.options.begin(), agent.options.end(), name) != agent.options.end();
}

void read_torchrun(Agent& agent) {
  agent.is_standalone = has_flag(agent, "--standalone");
  agent.machines = first_of(agent, {"--nnodes"}).value_or("1");
  agent.machine_rank = first_of(agent, {"--node-rank", "--node_rank"});
  agent.processes = first_of(agent, {"--nproc-per-node", "--nproc_per_node"}).value_or("1");
  agent.address = first_of(agent, {"--rdzv-endpoint", "--rdzv_endpoint", "--master-addr", "--master_addr"});
  const OptionText backend = first_of(agent, {"--rdzv-backend", "--rdzv_backend"});
  agent.has_dynamic_ranks = backend && *backend != "static";
}

// The configuration of accelerate: its top-level values. Nothing if it cannot be read.
std::optional<std::map<std::string, std::string>> read_values(const Path& path) {
  const auto text = read_file(path, 1_MiB);
  if (!text.ok()) return std::nullopt;
  std::map<std::string, std::string> values;
  for (std::string_view line : split(*text, '\n')) {
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || line.empty() || line[0] == ' ' || line[0] == '#') continue;
    std::string_view value = trim(line.substr(colon + 1));
    if (value.size() > 1 && (value[0] == '\'' || value[0] == '"')) value = value.substr(1, value.size() - 2);
    if (!value.empty() && value != "null") values[std::string(trim(line.substr(0, colon)))] = value;
  }
  return values;
}

// The file that accelerate reads without --config_file, or an empty path.
Path default_configuration(const AgentContext& context) {
  if (!context.environment) return {};
  const auto cache = context.environment("HF_HOME");
  const auto home = context.environment("HOME");
  if (!cache && !home) return {};
  const Path folder = (cache ? Path(*cache) : Path(*home) / ".cache" / "huggingface") / "accelerate";
  const Path file = folder / "default_config.yaml";
  if (path_exists(file)) return file;
  return {};
}

void read_accelerate(Agent& agent, const AgentContext& context) {
  std::map<std::string, std::string> values;
  const OptionText named = first_of(agent, {"--config_file", "--config-file"});
  const Path file = named ? context.directory / *named : default_configuration(context);
  if (!file.empty()) {
    auto read = has_changed_since(file, context.as_of) ? std::nullopt : read_values(file);
    if (!read) agent.is_complete = false;
    if (read) values = std::move(*read);
  }
  const auto value = [&](std::initializer_list<std::string_view> names, const char* key) -> OptionText {
    if (OptionText given = first_of(agent, names)) return given;
    const auto found = values.find(key);
    return found == values.end() ? std::nullopt : OptionText(found->second);
  };
  agent.machines = value({"--num_machines", "--num-machines"}, "num_machines").value_or("1");
  agent.machine_rank = value({"--machine_rank", "--machine-rank"}, "machine_rank");
  agent.processes = value({"--num_processes", "--num-processes"}, "num_processes");
  agent.address = value({"--main_process_ip", "--main-process-ip"}, "main_process_ip");
  const OptionText backend = value({"--rdzv_backend", "--rdzv-backend"}, "rdzv_backend");
  agent.has_dynamic_ranks = backend && *backend != "static";
}

void read_deepspeed(Agent& agent) {
  agent.machine_rank = first_of(agent, {"--node_rank"});
  agent.address = first_of(agent, {"--master_addr"});
  agent.processes = first_of(agent, {"--num_gpus"});
  const bool has_hosts =
      first_of(agent, {"--hostfile", "-H", "--launcher"}).has_value() || has_flag(agent, "--force_multi");
  if (!has_hosts) agent.machines = "1";
}

}  // namespace

bool has_changed_since(const Path& file, std::optional<double> as_of) {
  struct stat about{};
  if (!as_of || ::stat(file.c_str(), &about) != 0) return false;
  return static_cast<double>(about.st_mtim.tv_sec) > *as_of;
}

const bash::WordPiece* only_variable(const bash::Word& word) {
  const bash::WordPiece* variable = nullptr;
  for (const bash::WordPiece& piece : word.pieces) {
    if (piece.kind == bash::PieceKind::literal && piece.text.empty()) continue;
    if (variable != nullptr || piece.kind != bash::PieceKind::variable) return nullptr;
    variable = &piece;
  }
  return variable;
}

std::string expand_variables(const std::string& text, const std::map<std::string, std::string>& variables) {
  constexpr std::size_t kLongest = std::size_t{64} << 10;
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at + 1;
    if (text[at] == '$') {
      while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) || text[end] == '_'))
        ++end;
      const auto known = variables.find(text.substr(at + 1, end - at - 1));
      if (known != variables.end() && out.size() < kLongest) {
        out += known->second;
        at = end;
        continue;
      }
    }
    out.append(text, at, end - at);
    at = end;
  }
  return out;
}

std::optional<Agent> read_agent(const ProgramCall& call, const AgentContext& context) {
  if (!is_agent(call)) return std::nullopt;
  Agent agent;
  agent.name = call.program;
  const std::vector<ExpandedWord> words = expanded_words(call, context);
  std::size_t first = 0;
  const std::string module = is_python(call.program) ? call.option("-m").value_or("") : "";
  if (!module.empty()) {
    const auto at = std::find_if(words.begin(), words.end(),
                                 [&](const ExpandedWord& word) { return word.text == module; });
    first = static_cast<std::size_t>(at - words.begin()) + 1;
    agent.name = call.program + " -m " + module;
  }
  if (call.program == "accelerate") first = 1;
  if (call.program == "accelerate" || module == "accelerate.commands.launch") {
    agent.kind = AgentKind::accelerate;
  } else if (call.program == "deepspeed" || module == "deepspeed.launcher.runner") {
    agent.kind = AgentKind::deepspeed;
  } else if (call.program == "horovodrun") {
    return std::nullopt;  // starts its ranks through ssh
  }
  divide(words, std::min(first, words.size()), agent);
  if (agent.kind == AgentKind::torchrun) read_torchrun(agent);
  if (agent.kind == AgentKind::accelerate) read_accelerate(agent, context);
  if (agent.kind == AgentKind::deepspeed) read_deepspeed(agent);
  return agent;
}

}  // namespace stoker::script_lint
