#include "report/html/markup.h"

#include "base/encode.h"
#include "base/hash.h"
#include "stoker/text.h"

namespace stoker::report::html {

std::string element(std::string_view name, std::string_view css_class, std::string_view text) {
  const std::string open =
      css_class.empty() ? format("<{}>", name) : format("<{} class=\"{}\">", name, css_class);
  return open + escape_html(text) + format("</{}>", name);
}

std::string policy_hash(std::string_view content) { return "sha256-" + base64(sha256(content)); }

}  // namespace stoker::report::html
