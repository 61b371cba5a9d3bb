#include "cli/arguments.h"

#include <algorithm>

#include <CLI/CLI.hpp>

#include "cli/output.h"

namespace stoker::cli {

Arguments::Arguments(std::string_view command, std::string_view summary) {
  text_.name = command;
  text_.summary = summary;
  flag("--json", &wants_json_, "Print one JSON value, also on errors");
}

void Arguments::add(manual::ArgumentText argument, PositionalTarget target) {
  argument.value = manual::hint_of(argument.name);
  text_.arguments.push_back(std::move(argument));
  positionals_.push_back(target);
  last_ = &text_.arguments.back().value;
}

void Arguments::positional(std::string_view name, std::string* target, std::string_view what) {
  add({.name = std::string(name), .what = std::string(what), .is_required = true}, {target, nullptr});
}

void Arguments::optional_positional(std::string_view name, std::string* target, std::string_view what) {
  add({.name = std::string(name), .what = std::string(what)}, {target, nullptr});
}

void Arguments::positional_list(std::string_view name, std::vector<std::string>* target,
                                std::string_view what, std::size_t at_least) {
  STOKER_CHECK(at_least <= 1);
  add({.name = std::string(name), .what = std::string(what), .is_required = at_least > 0, .is_list = true},
      {nullptr, target});
}

void Arguments::rest(std::string_view name, std::vector<std::string>* target, std::string_view what) {
  text_.rest = manual::ArgumentText{.name = std::string(name), .what = std::string(what), .is_list = true};
  text_.rest->value.files = true;
  rest_ = target;
}

void Arguments::flag(std::string_view names, bool* target, std::string_view what) {
  text_.options.push_back({.names = std::string(names), .what = std::string(what)});
  options_.push_back({target, {}});
  last_ = nullptr;
}

void Arguments::add(std::string_view names, std::string_view value_name, std::string_view what,
                    std::string shown_default, std::function<Status(const std::string&)> assign) {
  text_.options.push_back({.names = std::string(names),
                           .value_name = std::string(value_name),
                           .what = std::string(what),
                           .shown_default = std::move(shown_default),
                           .value = manual::hint_of(value_name)});
  options_.push_back({nullptr, std::move(assign)});
  last_ = &text_.options.back().value;
}

void Arguments::choices(std::span<const std::string_view> values) {
  STOKER_CHECK(last_ != nullptr);
  last_->choices.assign(values.begin(), values.end());
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
  add(names, value_name, what, "", [target](const std::string& text) {
    target->push_back(text);
    return Status();
  });
  text_.options.back().is_repeatable = true;
}

void Arguments::example(std::string_view command_line) { text_.examples.emplace_back(command_line); }

std::vector<std::string_view> Arguments::option_names() const {
  std::vector<std::string_view> names{"--help"};
  for (const manual::OptionText& option : text_.options) {
    for (const std::string_view name : manual::flags_of(option)) names.push_back(name);
  }
  return names;
}

manual::CommandText Arguments::description() const {
  manual::CommandText text = text_;
  text.options.push_back({.names = "--help", .what = "Show this help"});
  return text;
}

Status Arguments::assign_positionals(std::span<const std::string> words) {
  const std::string& command = text_.name;
  for (std::size_t i = 0; i < positionals_.size(); ++i) {
    const manual::ArgumentText& argument = text_.arguments[i];
    if (words.empty() && argument.is_required)
      return invalid("{}: {} is missing", command, argument.name).cure("stoker {} --help", command);
    if (argument.is_list) {
      positionals_[i].many->assign(words.begin(), words.end());
      return {};
    }
    if (words.empty()) return {};
    *positionals_[i].one = words.front();
    words = words.subspan(1);
  }
  if (!words.empty()) {
    return invalid("{}: unexpected '{}'", command, printable(words.front()))
        .cure("stoker {} --help", command);
  }
  return {};
}

Status Arguments::parse_words(std::span<const std::string> words, bool* wants_help) {
  if (rest_ != nullptr) {
    const auto dashes = std::find(words.begin(), words.end(), "--");
    if (dashes != words.end()) rest_->assign(dashes + 1, words.end());
    words = words.first(static_cast<std::size_t>(dashes - words.begin()));
  }
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  app.allow_windows_style_options(false);
  app.add_flag("-h,--help", *wants_help);
  Status failed;
  for (std::size_t i = 0; i < options_.size(); ++i) {
    const OptionTarget& option = options_[i];
    const std::string& names = text_.options[i].names;
    if (option.flag != nullptr) {
      app.add_flag(names, *option.flag)->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
      continue;
    }
    // Values are assigned in order: the last value of a single-valued option wins.
    app.add_option_function<std::vector<std::string>>(
           names,
           [&option, &names, &failed](const std::vector<std::string>& values) {
             for (const std::string& value : values) {
               Status status = option.assign(value);
               if (!status.ok() && failed.ok()) failed = std::move(status).with_context(names);
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
    return invalid("{}: {}", text_.name, error.what()).cure("stoker {} --help", text_.name);
  }
  if (*wants_help) return {};
  if (!failed.ok()) return std::move(failed).with_context(text_.name);
  std::vector<std::string> plain;
  bool is_past_dashes = false;
  for (const std::string& word : app.remaining()) {
    if (word == "--" && !is_past_dashes) {
      is_past_dashes = true;
    } else if (!is_past_dashes && word.size() > 1 && word[0] == '-') {
      const std::string name = word.substr(0, word.find('='));
      return invalid("{}: unknown option '{}'{}", text_.name, printable(name),
                     suggestion(name, option_names()))
          .cure("stoker {} --help", text_.name);
    } else {
      plain.push_back(word);
    }
  }
  return assign_positionals(plain);
}

std::optional<int> Arguments::parse(std::span<const std::string> words, Output& out) {
  if (manual::CommandText* wanted = out.description()) {
    *wanted = description();
    return exit_code::kOk;
  }
  bool wants_help = false;
  const Status status = parse_words(words, &wants_help);
  if (!status.ok()) return out.fail(status);
  if (!wants_help) return std::nullopt;
  out.raw(manual::help_text(description()));
  return exit_code::kOk;
}

}  // namespace stoker::cli
