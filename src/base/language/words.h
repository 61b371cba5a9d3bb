// Texts for people in their own language. Rooms write them in English, where they are needed; what stands for
// each in another language is in a catalogue (po/LANGUAGE.po, in the form of gettext) that is part of the
// program: it has to be found by one that was copied somewhere, on a machine without that locale. A text that
// its catalogue lacks is said in English. Thread-safe: no state.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/text.h"

namespace stoker {

enum class Language { english, french };

struct LanguageName {
  Language language;
  std::string_view code;  ///< as options and locales call it: "fr"
};
/// All of them, English first.
std::span<const LanguageName> languages();

/// The language that a locale's name stands for ("fr_CA.UTF-8"), English for one that is not spoken here.
Language language_of_locale(std::string_view locale);

/// A text that was said by Words: nobody can forget to translate what has to be one.
class Said {
 public:
  operator std::string() const { return text_; }
  const std::string& text() const { return text_; }

 private:
  friend class Words;
  friend Said quoted(std::string text);
  explicit Said(std::string text) : text_(std::move(text)) {}
  std::string text_;
};

class Catalogue;

/// Says things in one language. A literal that it is given is a text of the catalogues:
/// script/lib/check_messages.py finds it by the call.
class Words {
 public:
  Words() = default;
  explicit Words(Language language);

  /// That text, as it is, in this language. The view holds as long as the text.
  std::string_view of(std::string_view text) const;

  /// As `format`. In another language the arguments of the pattern may come in another order: "{1} … {0}".
  template <typename... Args>
  Said say(std::string_view pattern, const Args&... args) const {
    return Said(format(of(pattern), args...));
  }

 private:
  const Catalogue* catalogue_ = nullptr;  // none: English
};

/// A finding's text that is no rule's own: others' words, as they are.
Said quoted(std::string text);

}  // namespace stoker
