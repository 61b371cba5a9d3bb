#include "base/language/words.h"

#include <array>

#include "base/language/catalogue.h"

namespace stoker {
namespace {

constexpr std::array<LanguageName, 2> kLanguages = {{{Language::english, "en"}, {Language::french, "fr"}}};

// Read when it is first asked for. The tests have read it: one that is damaged says nothing.
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

Words::Words(Language language) : catalogue_(catalogue_of(language)) {}

std::string_view Words::of(std::string_view text) const {
  const std::string_view found = catalogue_ == nullptr ? std::string_view() : catalogue_->find(text);
  return found.data() == nullptr ? text : found;
}

Said quoted(std::string text) { return Said(std::move(text)); }

}  // namespace stoker
