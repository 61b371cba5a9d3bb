#include "base/language/translator.h"

#include <array>
#include <vector>

#include "base/language/catalogue.h"

namespace stoker {
namespace {

constexpr std::array<LanguageName, 2> kLanguages = {{{Language::english, "en"}, {Language::french, "fr"}}};

// Read on first use. Tests verify the catalogue. A damaged one translates nothing.
const Catalogue* catalogue_of(Language language) {
  if (language == Language::english) return nullptr;
  static const Catalogue french = [] {
    const auto entries = read_catalogue(french_catalogue());
    return Catalogue(entries.ok() ? *entries : std::vector<CatalogueEntry>());
  }();
  return &french;
}

}  // namespace

std::span<const LanguageName> languages() { return kLanguages; }

Language language_of_locale(std::string_view locale) {
  const std::string_view code = locale.substr(0, locale.find_first_of("_.@"));
  for (const LanguageName& each : kLanguages) {
    if (code == each.code) return each.language;
  }
  return Language::english;
}

Translator::Translator(Language language) : catalogue_(catalogue_of(language)) {}

std::string_view Translator::translate(std::string_view text) const {
  const std::string_view found = catalogue_ == nullptr ? std::string_view() : catalogue_->find(text);
  return found.data() == nullptr ? text : found;
}

std::string Translator::render(const Message& message) const {
  if (message.formatter_ == nullptr) return message.pattern_;
  std::vector<std::string> nested;
  nested.reserve(message.arguments_.size());  // arguments refer to its elements
  std::vector<FormatArg> arguments;
  for (const Message::Argument& argument : message.arguments_) {
    if (argument.message.empty()) {
      std::visit([&](const auto& value) { arguments.emplace_back(value); }, argument.value);
    } else {
      arguments.emplace_back(nested.emplace_back(render(argument.message.front())));
    }
  }
  return clipped(message.formatter_(translate(message.pattern_), arguments), message.most_);
}

Localized untranslated(std::string text) { return Localized(std::move(text)); }

}  // namespace stoker
