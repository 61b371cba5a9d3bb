#include "cli/explain/language.h"

#include <algorithm>

#include "slurm/allocation.h"

namespace stoker::cli {
namespace {

// The order of POSIX for messages.
Language language_of_environment() {
  const slurm::Lookup environment = slurm::process_environment();
  for (const char* name : {"LC_ALL", "LC_MESSAGES", "LANG"}) {
    const auto value = environment(name);
    if (value && !value->empty()) return language_of_locale(*value);
  }
  return Language::english;
}

std::vector<std::string_view> language_choices() {
  std::vector<std::string_view> codes;
  for (const LanguageName& each : languages()) codes.push_back(each.code);
  codes.emplace_back(kLocaleLanguage);
  return codes;
}

}  // namespace

void add_language_option(Arguments& arguments, std::string* name) {
  arguments.option("--lang", name, "LANGUAGE", "Set the message language: en, fr; auto: the locale's");
  arguments.choices(language_choices());
}

Result<Translator> parse_language(const std::string& name) {
  if (name == kLocaleLanguage) return Translator(language_of_environment());
  for (const LanguageName& each : languages()) {
    if (name == each.code) return Translator(each.language);
  }
  return invalid("--lang: unknown language '{}'{}", printable(name), suggestion(name, language_choices()));
}

std::string resolve_language_code(const std::string& name) {
  if (name != kLocaleLanguage) return name;
  const Language language = language_of_environment();
  const auto named = std::ranges::find(languages(), language, &LanguageName::language);
  return std::string(named->code);
}

}  // namespace stoker::cli
