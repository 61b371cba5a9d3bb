// A gettext catalogue (PO): English texts and their translations. Internal to this folder and its test.
// Thread-safe: no state.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "stoker/status.h"

namespace stoker {

struct CatalogueEntry {
  std::string english;
  std::string translated;  ///< "" without a translation
  std::size_t line = 0;    ///< in the catalogue
  bool is_fuzzy = false;   ///< the English text has changed since the translation
};

/// The entries of a catalogue in order, without its header. Supports no plurals and no contexts.
Result<std::vector<CatalogueEntry>> read_catalogue(std::string_view po);

/// The placeholders of a pattern in order: "{}", "{:.1f}", "{2}", "{frame}". Doubled braces do not count.
std::vector<std::string> placeholders_in(std::string_view pattern);

class Catalogue {
 public:
  /// Fuzzy and untranslated entries are skipped.
  explicit Catalogue(const std::vector<CatalogueEntry>& entries);
  /// The translation, or a null view.
  std::string_view find(std::string_view english) const;

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  std::unordered_map<std::string, std::string, Hash, std::equal_to<>> texts_;
};

/// Content of po/fr.po, compiled in.
std::string_view french_catalogue();

}  // namespace stoker
