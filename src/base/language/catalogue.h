// A catalogue of texts as gettext's tools and translators keep it (PO): English, and what is said for it.
// Internal to this folder and its test. Thread-safe: no state.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"

namespace stoker {

struct CatalogueEntry {
  std::string english;
  std::string translated;  ///< "" where nobody has said it yet
  std::size_t line = 0;    ///< of the catalogue
  bool is_fuzzy = false;   ///< the English has changed since, and somebody has to look at it
};

/// The entries of a catalogue but its header, in order. Of the form only what texts need: no plurals, no
/// contexts.
Result<std::vector<CatalogueEntry>> read_catalogue(std::string_view po);

/// What a pattern is filled with: "{}", "{:.1f}", "{2}", "{frame}", in order. Doubled braces are none.
std::vector<std::string> placeholders_in(std::string_view pattern);

class Catalogue {
 public:
  /// Fuzzy entries and those not translated are left out.
  explicit Catalogue(const std::vector<CatalogueEntry>& entries);
  /// Nothing (a null view) for a text that is not in it.
  std::string_view find(std::string_view english) const;

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  std::unordered_map<std::string, std::string, Hash, std::equal_to<>> texts_;
};

/// The text of the French catalogue, compiled in from po/fr.po.
std::string_view french_catalogue();

}  // namespace stoker
