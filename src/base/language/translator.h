// Localized texts. Rooms write messages in English. Translations are in a gettext catalogue (po/LANGUAGE.po)
// compiled into the program, so a copied program works on machines without that locale. A text missing from
// the catalogue stays English. Thread-safe: no state.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/language/message.h"
#include "stoker/status.h"
#include "stoker/text.h"

namespace stoker {

enum class Language { english, french };

struct LanguageName {
  Language language;
  std::string_view code;  ///< code in options and locales: "fr"
};
/// All of them, English first.
std::span<const LanguageName> languages();

/// The language of a locale name ("fr_CA.UTF-8"). English for an unsupported language.
Language language_of_locale(std::string_view locale);

/// A text that passed through Translator. The type ensures that a message is translated.
class Localized {
 public:
  operator std::string() const { return text_; }
  const std::string& text() const { return text_; }

 private:
  friend class Translator;
  friend Localized untranslated(std::string text);
  explicit Localized(std::string text) : text_(std::move(text)) {}
  std::string text_;
};

class Catalogue;

/// Translates into one language. Literals passed to localize() are catalogue entries:
/// script/lib/check_messages.py finds them by the call.
class Translator {
 public:
  Translator() = default;
  explicit Translator(Language language);

  /// Translates a text without arguments. The view is valid as long as `text`.
  std::string_view translate(std::string_view text) const;

  /// Like `format`, with a translated pattern. A translation may reorder the arguments: "{1} … {0}".
  template <typename... Args>
  Localized localize(std::string_view pattern, const Args&... args) const {
    return Localized(format(translate(pattern), args...));
  }

  /// Translates and formats the message.
  std::string render(const Message& message) const;

 private:
  const Catalogue* catalogue_ = nullptr;  // none: English
};

/// A text without a translation, such as third-party output.
Localized untranslated(std::string text);

}  // namespace stoker
