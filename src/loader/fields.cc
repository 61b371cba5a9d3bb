#include "stoker/fields.h"

#include <cmath>
#include <optional>

#include "base/encode.h"
#include "base/json/json.h"
#include "codec/csv.h"
#include "stoker/text.h"

namespace stoker::loader {
namespace {

using Json = nlohmann::json;

// Larger files are not parsed; the parser needs many times as much memory.
constexpr std::size_t kLargest = 16u << 20;

const char* to_text(FieldKind kind) {
  switch (kind) {
    case FieldKind::number:
      return "a number";
    case FieldKind::integer:
      return "a whole number";
    case FieldKind::text:
      return "a text";
  }
  return "";
}

// The component may be "seg.json": the format is after the last dot.
std::string_view format_of(std::string_view component) {
  return component.substr(component.rfind('.') + 1);  // npos + 1 is 0
}

std::optional<FieldValue> value_of(const Json& json, FieldKind kind) {
  if (kind == FieldKind::text) {
    return json.is_string() ? std::optional<FieldValue>(json.get<std::string>()) : std::nullopt;
  }
  if (json.is_boolean() && kind == FieldKind::integer) return std::int64_t{json.get<bool>()};
  if (!json.is_number()) return std::nullopt;
  if (kind == FieldKind::number) return json.get<double>();
  if (json.is_number_unsigned() && json.get<std::uint64_t>() > INT64_MAX) return std::nullopt;
  if (json.is_number_integer()) return json.get<std::int64_t>();
  return std::nullopt;
}

std::optional<FieldValue> value_of(const std::string& cell, FieldKind kind) {
  if (kind == FieldKind::text) return cell;
  if (kind == FieldKind::number) {
    double value = 0;
    return parse_number(trim(cell), &value) && std::isfinite(value) ? std::optional<FieldValue>(value)
                                                                    : std::nullopt;
  }
  const bool is_negative = trim(cell).starts_with('-');
  std::uint64_t value = 0;
  if (!parse_number(trim(cell).substr(is_negative ? 1 : 0), &value) || value > INT64_MAX) return std::nullopt;
  const auto whole = static_cast<std::int64_t>(value);
  return is_negative ? -whole : whole;
}

const Json* find(const Json& json, std::string_view name) {
  const Json* at = &json;
  for (const std::string_view level : split(name, '.')) {
    if (!at->is_object()) return nullptr;
    const auto found = at->find(std::string(level));
    if (found == at->end()) return nullptr;
    at = &*found;
  }
  return at;
}

Status no_field(const ComponentField& field) {
  return corrupt("{}: no field '{}'", field.component, field.name);
}
Status wrong_kind(const ComponentField& field) {
  return corrupt("{}: field '{}' is not {}", field.component, field.name, to_text(field.kind));
}

Result<std::vector<FieldValue>> from_json(std::string_view text, std::span<const ComponentField> fields) {
  const Json json = parse_json<Json>(text);
  if (json.is_discarded()) return corrupt("{}: not valid JSON", fields[0].component);
  std::vector<FieldValue> values;
  for (const ComponentField& field : fields) {
    const Json* found = find(json, field.name);
    if (!found) return no_field(field);
    std::optional<FieldValue> value = value_of(*found, field.kind);
    if (!value) return wrong_kind(field);
    values.push_back(std::move(*value));
  }
  return values;
}

Result<std::vector<FieldValue>> from_csv(std::string_view text, std::span<const ComponentField> fields) {
  const std::string& component = fields[0].component;
  codec::CsvReader reader(text, format_of(component) == "tsv" ? '\t' : ',', component);
  std::vector<std::vector<std::string>> rows;
  for (;;) {
    const auto row = reader.next();
    if (!row.ok()) return corrupt("{}", row.status().message());
    if (!row->has_value()) break;
    if (rows.size() == 2) return corrupt("{}: more than a header and one line of values", component);
    rows.push_back(**row);
  }
  if (rows.size() < 2) return corrupt("{}: expected a header and one line of values", component);
  std::vector<FieldValue> values;
  for (const ComponentField& field : fields) {
    std::size_t column = 0;
    while (column < rows[0].size() && rows[0][column] != field.name) ++column;
    if (column == rows[0].size() || column >= rows[1].size()) return no_field(field);
    std::optional<FieldValue> value = value_of(rows[1][column], field.kind);
    if (!value) return wrong_kind(field);
    values.push_back(std::move(*value));
  }
  return values;
}

}  // namespace

Result<std::vector<FieldValue>> read_fields(std::span<const std::byte> file,
                                            std::span<const ComponentField> fields) {
  if (fields.empty()) return std::vector<FieldValue>();
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  const std::string& component = fields[0].component;
  if (text.size() > kLargest) return corrupt("{}: over 16 MiB", component);
  if (fields[0].name.empty()) {
    if (!is_utf8(text)) return corrupt("{}: not UTF-8", component);
    return std::vector<FieldValue>(fields.size(), FieldValue(std::string(text)));
  }
  const std::string_view format = format_of(component);
  return format == "csv" || format == "tsv" ? from_csv(text, fields) : from_json(text, fields);
}

}  // namespace stoker::loader
