#include "cli/arguments.h"

#include <algorithm>

#include <CLI/CLI.hpp>

#include "cli/output.h"

namespace stoker::cli {

Arguments::Arguments(std::string_view command, std::string_view summary)
    : command_(command), summary_(summary) {
  flag("--json", &wants_json_, "Print one JSON value, also on errors");
}

void Arguments::positional(std::string_view name, std::string* target, std::string_view what) {
  positionals_.push_back({std::string(name), std::string(what), 1, false, target, nullptr});
}

void Arguments::optional_positional(std::string_view name, std::string* target, std::string_view what) {
  positionals_.push_back({std::string(name), std::string(what), 0, false, target, nullptr});
}

void Arguments::positional_list(std::string_view name, std::vector<std::string>* target,
                                std::string_view what, std::size_t at_least) {
  positionals_.push_back({std::string(name), std::string(what), at_least, true, nullptr, target});
}

void Arguments::rest(std::string_view name, std::vector<std::string>* target, std::string_view what) {
  rest_ = Positional{std::string(name), std::string(what), 0, true, nullptr, target};
}

void Arguments::flag(std::string_view names, bool* target, std::string_view what) {
  options_.push_back({std::string(names), "", std::string(what), "", target, {}});
}

void Arguments::add(std::string_view names, std::string_view value_name, std::string_view what,
                    std::string shown_default, std::function<Status(const std::string&)> assign) {
  options_.push_back({std::string(names), std::string(value_name), std::string(what),
                      std::move(shown_default), nullptr, std::move(assign)});
}

void Arguments::option(std::string_view names, std::string* target, std::string_view value_name,
                       std::string_view what) {
  add(names, value_name, what, *target, [target](const std::string& text) {
    *target = text;
    return Status();
  });
}

namespace {

Result<std::int64_t> parse_integer(const std::string& text) {
  std::int64_t number = 0;
  if (!parse_number(text, &number)) return invalid("'{}' is not a whole number", printable(text));
  return number;
}

template <typename Target, typename Parse>
std::function<Status(const std::string&)> assigner(Target* target, Parse parse) {
  return [target, parse](const std::string& text) -> Status {
    STOKER_ASSIGN_OR_RETURN(value, parse(text));
    *target = value;
    return {};
  };
}

}  // namespace

void Arguments::option(std::string_view names, std::int64_t* target, std::string_view value_name,
                       std::string_view what) {
  add(names, value_name, what, std::to_string(*target), assigner(target, parse_integer));
}

void Arguments::option(std::string_view names, std::optional<std::int64_t>* target,
                       std::string_view value_name, std::string_view what) {
  add(names, value_name, what, *target ? std::to_string(**target) : "", assigner(target, parse_integer));
}

void Arguments::option(std::string_view names, std::optional<ByteCount>* target, std::string_view value_name,
                       std::string_view what) {
  add(names, value_name, what, *target ? to_text(**target) : "", assigner(target, parse_bytes));
}

void Arguments::option(std::string_view names, std::optional<Duration>* target, std::string_view value_name,
                       std::string_view what) {
  add(names, value_name, what, *target ? duration_text(**target) : "", assigner(target, parse_duration));
}

void Arguments::option(std::string_view names, std::vector<std::string>* target, std::string_view value_name,
                       std::string_view what) {
  add(names, value_name, format("{} (may be repeated)", what), "", [target](const std::string& text) {
    target->push_back(text);
    return Status();
  });
}

void Arguments::example(std::string_view command_line) { examples_.emplace_back(command_line); }

std::vector<std::string_view> Arguments::option_names() const {
  std::vector<std::string_view> names{"--help"};
  for (const Option& option : options_) {
    for (std::string_view name : split(option.names, ',')) names.push_back(name);
  }
  return names;
}

std::string Arguments::usage() const {
  std::string text = "stoker " + command_;
  for (const Positional& p : positionals_) {
    const std::string shown = p.name + (p.is_list ? "..." : "");
    text += p.at_least > 0 ? " " + shown : " [" + shown + "]";
  }
  text += " [options]";
  if (rest_) text += " -- " + rest_->name + "...";
  return text;
}

std::string Arguments::help() const {
  std::string text = format("{}\n\nUsage: {}\n", summary_, usage());
  std::vector<std::pair<std::string, std::string>> rows;
  for (const Positional& p : positionals_) rows.emplace_back(p.name, p.what);
  if (rest_) rows.emplace_back(rest_->name, rest_->what);
  for (const Option& option : options_) {
    std::string names = option.names;
    for (std::size_t comma = names.find(','); comma != std::string::npos;
         comma = names.find(',', comma + 2)) {
      names.insert(comma + 1, " ");
    }
    if (!option.value_name.empty()) names += " " + option.value_name;
    rows.emplace_back(names, option.shown_default.empty()
                                 ? option.what
                                 : format("{} [{}]", option.what, option.shown_default));
  }
  rows.emplace_back("--help", "Show this help");
  std::size_t widest = 0;
  for (const auto& row : rows) widest = std::max(widest, row.first.size());
  text += "\n";
  for (const auto& [names, what] : rows) text += format("  {:<{}}  {}\n", names, widest, what);
  if (!examples_.empty()) text += "\nExample:\n";
  for (const std::string& example : examples_) text += format("  {}\n", example);
  return text;
}

Status Arguments::assign_positionals(std::span<const std::string> words) {
  for (const Positional& p : positionals_) {
    if (p.is_list) {
      if (words.size() < p.at_least)
        return invalid("{}: {} is missing", command_, p.name).cure("stoker {} --help", command_);
      p.many->assign(words.begin(), words.end());
      return {};
    }
    if (words.empty()) {
      if (p.at_least == 0) return {};
      return invalid("{}: {} is missing", command_, p.name).cure("stoker {} --help", command_);
    }
    *p.one = words.front();
    words = words.subspan(1);
  }
  if (!words.empty()) {
    return invalid("{}: unexpected '{}'", command_, printable(words.front()))
        .cure("stoker {} --help", command_);
  }
  return {};
}

Status Arguments::parse_words(std::span<const std::string> words, bool* wants_help) {
  if (rest_) {
    const auto dashes = std::find(words.begin(), words.end(), "--");
    if (dashes != words.end()) rest_->many->assign(dashes + 1, words.end());
    words = words.first(static_cast<std::size_t>(dashes - words.begin()));
  }
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  app.allow_windows_style_options(false);
  app.add_flag("-h,--help", *wants_help);
  Status failed;
  for (const Option& option : options_) {
    if (option.flag != nullptr) {
      app.add_flag(option.names, *option.flag)->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
      continue;
    }
    // Values are assigned in order: the last value of a single-valued option wins.
    app.add_option_function<std::vector<std::string>>(
           option.names,
           [&option, &failed](const std::vector<std::string>& values) {
             for (const std::string& value : values) {
               Status status = option.assign(value);
               if (!status.ok() && failed.ok()) failed = std::move(status).with_context(option.names);
             }
           })
        ->take_all()
        ->expected(1)
        ->type_size(1)
        ->allow_extra_args(false);  // `-j 2 PATH`: PATH is not a value of -j
  }
  // CLI11 consumes its vector from the back.
  std::vector<std::string> reversed(words.rbegin(), words.rend());
  try {
    app.parse(std::move(reversed));
  } catch (const CLI::ParseError& error) {
    return invalid("{}: {}", command_, error.what()).cure("stoker {} --help", command_);
  }
  if (*wants_help) return {};
  if (!failed.ok()) return std::move(failed).with_context(command_);
  std::vector<std::string> plain;
  bool is_past_dashes = false;
  for (const std::string& word : app.remaining()) {
    if (word == "--" && !is_past_dashes) {
      is_past_dashes = true;
    } else if (!is_past_dashes && word.size() > 1 && word[0] == '-') {
      const std::string name = word.substr(0, word.find('='));
      return invalid("{}: unknown option '{}'{}", command_, printable(name), suggestion(name, option_names()))
          .cure("stoker {} --help", command_);
    } else {
      plain.push_back(word);
    }
  }
  return assign_positionals(plain);
}

std::optional<int> Arguments::parse(std::span<const std::string> words, Output& out) {
  bool wants_help = false;
  const Status status = parse_words(words, &wants_help);
  if (!status.ok()) return out.fail(status);
  if (!wants_help) return std::nullopt;
  out.raw(help());
  return exit_code::kOk;
}

}  // namespace stoker::cli
