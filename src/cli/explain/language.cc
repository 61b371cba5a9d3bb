#include "cli/explain/language.h"

#include "slurm/allocation.h"

namespace stoker::cli {
namespace {

// As POSIX has it for messages.
Language language_of_environment() {
  const slurm::Lookup environment = slurm::process_environment();
  for (const char* name : {"LC_ALL", "LC_MESSAGES", "LANG"}) {
    const auto value = environment(name);
    if (value && !value->empty()) return language_of_locale(*value);
  }
  return Language::english;
}

}  // namespace

void add_language_option(Arguments& arguments, std::string* name) {
  arguments.option("--lang", name, "LANGUAGE", "language of what is said: en, fr; auto: that of the locale");
}

Result<Words> words_named(const std::string& name) {
  if (name == kLanguageOfLocale) return Words(language_of_environment());
  std::vector<std::string_view> codes;
  for (const LanguageName& each : languages()) {
    if (name == each.code) return Words(each.language);
    codes.push_back(each.code);
  }
  codes.emplace_back(kLanguageOfLocale);
  return invalid("--lang: no language '{}'{}", printable(name), suggestion(name, codes));
}

}  // namespace stoker::cli
