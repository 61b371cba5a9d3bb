#include "script_lint/walker.h"

#include <algorithm>
#include <utility>

#include "bash/parser.h"
#include "script_lint/inner_command.h"
#include "stoker/text.h"

namespace stoker::script_lint {
namespace {

using bash::CommandKind;

constexpr int kDeepestScript = 4;                          // bash -c in bash -c
constexpr std::size_t kLongestValue = 4096;                // of a tracked variable
constexpr std::size_t kMaxGrowth = std::size_t{16} << 20;  // by variables in all words
constexpr std::size_t kMaxCalls =
    20'000;                      // and settings: far above real scripts; bounds the cost of the rules
constexpr int kMaxWrappers = 8;  // "nohup env nice ..."

bool is_shell(std::string_view program) { return program == "bash" || program == "sh" || program == "zsh"; }

// The span between the quotes of a fully quoted word.
std::optional<bash::Span> inside_of_quotes(const bash::Word& word, std::string_view text) {
  const auto [begin, end] = word.span;
  if (end < begin + 2 || (text[begin] != '\'' && text[begin] != '"') || text[end - 1] != text[begin])
    return std::nullopt;
  const std::string_view inside = text.substr(begin + 1, end - begin - 2);
  if (text[begin] == '\'' && inside.find('\'') != std::string_view::npos) return std::nullopt;
  return bash::Span{begin + 1, end - 1};
}

// The number of words of "{1..100}"; 1 without a range.
std::uint64_t count_braces(std::string_view word) {
  const std::size_t open = word.find('{');
  const std::size_t dots = word.find("..", open);
  if (open == std::string_view::npos || dots == std::string_view::npos) return 1;
  const std::string_view rest = word.substr(dots + 2, word.find('}', dots) - dots - 2);
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::int64_t step = 1;
  const std::size_t more = rest.find("..");
  if (!parse_number(word.substr(open + 1, dots - open - 1), &first) ||
      !parse_number(rest.substr(0, more), &last))
    return 1;
  if (more != std::string_view::npos) parse_number(rest.substr(more + 2), &step);
  const std::uint64_t distance = first < last
                                     ? static_cast<std::uint64_t>(last) - static_cast<std::uint64_t>(first)
                                     : static_cast<std::uint64_t>(first) - static_cast<std::uint64_t>(last);
  const std::uint64_t stride = step == 0  ? 1
                               : step < 0 ? 0 - static_cast<std::uint64_t>(step)
                                          : static_cast<std::uint64_t>(step);
  return std::min(distance / stride + 1, kMaxRepeats);
}

// "$(seq 1 100)"
std::uint64_t count_seq(const std::string& text) {
  if (!text.starts_with("$(seq ") || !text.ends_with(')')) return 1;
  std::vector<std::int64_t> numbers;
  for (std::string_view piece : split(trim(std::string_view(text).substr(6, text.size() - 7)), ' ')) {
    std::int64_t number = 0;
    if (piece.empty()) continue;
    if (!parse_number(piece, &number) || std::abs(number) > 1'000'000'000) return 1;
    numbers.push_back(number);
  }
  if (numbers.empty() || numbers.size() > 3) return 1;
  const std::int64_t first = numbers.size() > 1 ? numbers[0] : 1;
  const std::int64_t step = numbers.size() > 2 ? numbers[1] : 1;
  const std::int64_t last = numbers.back();
  if (step == 0 || (last - first) / step < 0) return 1;
  return static_cast<std::uint64_t>((last - first) / step) + 1;
}

}  // namespace

void Walker::walk() { walk_list(script_.tree.list, Context{}); }

void Walker::walk_list(const bash::List& list, const Context& context) {
  // "a && b &" runs both in the background.
  std::vector<bool> is_background(list.items.size() + 1, false);
  for (std::size_t i = list.items.size(); i-- > 0;) {
    const bash::Connector next = list.items[i].next;
    const bool is_chained = next == bash::Connector::and_ || next == bash::Connector::or_;
    is_background[i] = is_chained ? is_background[i + 1] : next == bash::Connector::background;
  }
  for (std::size_t i = 0; i < list.items.size(); ++i) {
    const bash::Item& item = list.items[i];
    Context own = context;
    own.is_background = context.is_background || is_background[i];
    if (item.next == bash::Connector::and_ || item.next == bash::Connector::or_ || item.pipeline.is_negated)
      own.is_condition = true;
    const auto outer = std::exchange(pipeline_, &item.pipeline);
    const std::size_t outer_index = pipeline_index_;
    for (pipeline_index_ = 0; pipeline_index_ < item.pipeline.commands.size(); ++pipeline_index_)
      walk_command(item.pipeline.commands[pipeline_index_], own);
    pipeline_index_ = outer_index;
    pipeline_ = outer;
  }
}

void Walker::walk_command(const bash::ShellCommand& command, const Context& context) {
  for (const bash::Redirection& redirection : command.redirections) walk_word(redirection.target, context);
  if (command.kind == CommandKind::simple) return walk_simple(command, context);
  for (const bash::Word& word : command.words) walk_word(word, context);
  walk_parts(command, context);
}

void Walker::walk_parts(const bash::ShellCommand& command, const Context& context) {
  Context own = context;
  const std::string directory = directory_;
  switch (command.kind) {
    case CommandKind::while_:
    case CommandKind::for_:
      return walk_loop(command, context);
    case CommandKind::subshell:
      own.is_subshell = true;
      break;
    case CommandKind::function:
      own.function = command.name;
      break;
    default:
      break;
  }
  for (std::size_t i = 0; i < command.parts.size(); ++i) {
    Context part = own;
    if (command.kind == CommandKind::if_ && i % 2 == 0 && i + 1 < command.parts.size())
      part.is_condition = true;
    walk_list(command.parts[i], part);
  }
  if (own.is_subshell || command.kind == CommandKind::function) directory_ = directory;
}

void Walker::walk_loop(const bash::ShellCommand& command, Context context) {
  context.loops += 1;
  if (command.kind == CommandKind::for_) {
    script_.variables.erase(command.name);
    context.repeats = std::min(context.repeats * count_of(command), kMaxRepeats);
  }
  for (std::size_t i = 0; i < command.parts.size(); ++i) {
    Context part = context;
    if (command.kind == CommandKind::while_ && i == 0) part.is_condition = true;
    walk_list(command.parts[i], part);
  }
}

// The number of iterations of a for, if known; 1 otherwise.
std::uint64_t Walker::count_of(const bash::ShellCommand& loop) {
  std::uint64_t count = 0;
  for (const bash::Word& word : loop.words) {
    const std::string text = resolve(flatten(word, script_.text));
    if (text.starts_with("((")) {
      const std::size_t less = text.find('<');
      const std::size_t digits = text.find_first_of("0123456789", less);
      std::uint64_t limit = 0;
      if (less == std::string::npos || digits == std::string::npos) return 1;
      const std::size_t end = text.find_first_not_of("0123456789", digits);
      return parse_number(std::string_view(text).substr(digits, end - digits), &limit) && limit > 0
                 ? std::min(limit, kMaxRepeats)
                 : 1;
    }
    const std::uint64_t words = text.starts_with("$(") ? count_seq(text) : count_braces(text);
    count = std::min(count + words, kMaxRepeats);
  }
  return std::max<std::uint64_t>(count, 1);
}

void Walker::walk_word(const bash::Word& word, const Context& context) {
  for (const bash::WordPiece& piece : word.pieces) walk_piece(piece, context);
}

void Walker::walk_piece(const bash::WordPiece& piece, const Context& context) {
  Context own = context;
  own.is_substituted = true;
  own.is_background = false;
  const std::string directory = directory_;
  for (const bash::List& list : piece.lists) walk_list(list, own);
  directory_ = directory;
  for (const bash::WordPiece& inner : piece.inner) walk_piece(inner, context);
}

void Walker::walk_simple(const bash::ShellCommand& command, const Context& context) {
  for (const bash::Assignment& assignment : command.assignments) {
    walk_word(assignment.value, context);
    for (const bash::Word& word : assignment.elements) walk_word(word, context);
  }
  for (const bash::Word& word : command.words) walk_word(word, context);
  record_assignments(command, context);
  if (!command.words.empty()) add_call(command, 0, context);
}

void Walker::record_assignments(const bash::ShellCommand& command, const Context& context) {
  const std::string first = command.words.empty() ? "" : flatten(command.words[0], script_.text);
  const bool declares = first == "export" || first == "declare" || first == "typeset" || first == "local" ||
                        first == "readonly";
  for (const bash::Assignment& assignment : command.assignments) {
    VariableSetting setting;
    setting.name = assignment.name;
    setting.value = resolve(flatten(assignment.value, script_.text));
    setting.assignment = &assignment;
    setting.is_exported = first == "export";
    setting.is_command_scoped = !command.words.empty() && !declares;
    setting.context = context;
    if (!setting.is_command_scoped) {
      const auto known = script_.variables.find(setting.name);
      const bool can_append = known != script_.variables.end() && known->second.size() < kLongestValue;
      if (assignment.is_array || (assignment.appends && !can_append) ||
          setting.value.size() > kLongestValue) {
        script_.variables.erase(setting.name);
      } else if (assignment.appends) {
        known->second += setting.value;
      } else {
        script_.variables[setting.name] = setting.value;
      }
      if (setting.is_exported) script_.exported.push_back(setting.name);
    }
    if (script_.settings.size() < kMaxCalls) script_.settings.push_back(std::move(setting));
  }
  if (first == "export") {
    for (const bash::Word& word : command.words) script_.exported.push_back(flatten(word, script_.text));
  }
}

// Expands $NAME for known variables.
std::string Walker::resolve(const std::string& text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at + 1;
    if (text[at] == '$') {
      while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) || text[end] == '_'))
        ++end;
      const auto known = script_.variables.find(text.substr(at + 1, end - at - 1));
      if (known != script_.variables.end() && grown_ < kMaxGrowth) {
        grown_ += known->second.size();
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

// Adds the program at word `first` of the command, and the program it starts.
void Walker::add_call(const bash::ShellCommand& command, std::size_t first, const Context& context) {
  if (script_.calls.size() >= kMaxCalls) return;
  ProgramCall call;
  call.program_word = &command.words[first];
  const std::string program = resolve(flatten(command.words[first], script_.text));
  call.program = program.substr(program.rfind('/') + 1);
  for (std::size_t i = first + 1; i < command.words.size(); ++i) {
    call.words.push_back(resolve(flatten(command.words[i], script_.text)));
    call.typed.push_back(&command.words[i]);
  }
  call.command = &command;
  call.pipeline = pipeline_;
  call.pipeline_index = pipeline_index_;
  call.span = {command.words[first].span.begin, command.words.back().span.end};
  call.directory = directory_;
  call.context = context;
  script_.calls.push_back(std::move(call));
  follow(script_.calls.back());
  add_inner(command, first, context);
}

// Updates the state for later commands.
void Walker::follow(const ProgramCall& call) {
  if ((call.program == "cd" || call.program == "pushd") && !call.words.empty() &&
      !call.context.is_background && call.context.function.empty())
    directory_ = call.words.back().starts_with("-") ? "" : call.words.back();
  if (call.program == "read" || call.program == "mapfile" || call.program == "unset") {
    for (const std::string& word : call.words) script_.variables.erase(word);
  }
}

void Walker::add_inner(const bash::ShellCommand& command, std::size_t first, const Context& context) {
  const std::size_t index = script_.calls.size() - 1;
  const std::string program = script_.calls[index].program;
  Context own = context;
  if (is_launcher(program)) own.launcher = index;
  if (program == "ssh") own.is_remote = true;
  std::vector<std::string> words = script_.calls[index].words;
  words.insert(words.begin(), program);
  if (const auto inner = inner_command(program, words)) {
    const bash::Word& word = command.words[first + *inner];
    const auto quoted = own.is_remote ? inside_of_quotes(word, script_.text) : std::nullopt;
    if (quoted) return walk_text(*quoted, own);
    if (++wrappers_ <= kMaxWrappers) add_call(command, first + *inner, own);
    --wrappers_;
    return;
  }
  if (!is_shell(program)) return;
  const auto is_option = [](const std::string& w) {
    return w.starts_with('-') && w.ends_with('c') && w[1] != '-';
  };
  const auto option = std::find_if(words.begin(), words.end(), is_option);
  if (option != words.end() && option + 1 != words.end()) {
    const std::size_t at = first + static_cast<std::size_t>(option - words.begin()) + 1;
    if (const auto quoted = inside_of_quotes(command.words[at], script_.text)) walk_text(*quoted, own);
    return;
  }
  for (const bash::Redirection& redirection : command.redirections) {
    if (redirection.heredoc && depth_ == 0 && *redirection.heredoc < script_.tree.heredocs.size())
      walk_text(script_.tree.heredocs[*redirection.heredoc].body, own);
  }
}

// Commands in a text for a different shell.
void Walker::walk_text(bash::Span span, const Context& context) {
  if (depth_ >= kDeepestScript) return;
  script_.inner.push_back(bash::parse(script_.text, span));
  ++depth_;
  const std::string directory = directory_;
  walk_list(script_.inner.back().list, context);
  directory_ = directory;
  --depth_;
}

}  // namespace stoker::script_lint
