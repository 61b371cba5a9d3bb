#include "report/html/markup.h"

#include <algorithm>
#include <cstddef>

#include "base/hash.h"
#include "base/text.h"

namespace stoker::report::html {

std::string escape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string element(std::string_view name, std::string_view css_class, std::string_view text) {
  const std::string open =
      css_class.empty() ? format("<{}>", name) : format("<{} class=\"{}\">", name, css_class);
  return open + escape(text) + format("</{}>", name);
}

std::string policy_hash(std::string_view content) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const Digest digest = sha256(content);
  std::string out = "sha256-";
  for (std::size_t i = 0; i < digest.size(); i += 3) {
    unsigned bits = 0;
    const std::size_t count = std::min<std::size_t>(3, digest.size() - i);
    for (std::size_t j = 0; j < 3; ++j)
      bits = bits << 8 | (j < count ? static_cast<unsigned>(digest[i + j]) : 0u);
    for (std::size_t j = 0; j < 4; ++j) out += j <= count ? kDigits[bits >> (18 - 6 * j) & 63] : '=';
  }
  return out;
}

}  // namespace stoker::report::html
