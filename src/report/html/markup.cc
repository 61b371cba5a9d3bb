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

std::string section(std::string_view title, std::string_view source, std::string_view body) {
  if (body.empty()) return "";
  std::string out = "<section><div>" + element("h2", "", title);
  if (!source.empty()) out += "<p class=\"source\">from " + escape_html(source) + "</p>";
  return out + "</div><div>" + std::string(body) + "</div></section>\n";
}

std::string table_html(const Table& table, std::size_t summing) {
  if (table.rows.empty()) return "";
  constexpr std::size_t kLong = 40;
  const auto kind_of = [&](std::size_t c, std::size_t length) {
    const Column& column = table.columns[c];
    return column.is_number ? "num" : column.is_long ? "wrap own" : length > kLong ? "wrap" : "";
  };
  const std::string tall = table.columns.back().is_long ? " class=\"tall\"" : "";
  std::string out = format("<div class=\"scroll\"><table{}><thead><tr>", tall);
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    out += element("th", kind_of(c, 0), table.columns[c].name);
  }
  out += "</tr></thead><tbody>\n";
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    out += r + summing >= table.rows.size() ? "<tr class=\"sum\">" : "<tr>";
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      const std::string& cell = table.rows[r][c];
      out += element("td", kind_of(c, cell.size()), cell);
    }
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>";
}

}  // namespace stoker::report::html
