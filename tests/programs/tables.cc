// For tests/test_parquet_tables.py: tables FILE prints a Parquet file's columns and values as JSON, through
// the library. Numbers and texts are hexadecimal, so that every bit is visible.
#include <iostream>
#include <string>

#include "base/file.h"
#include "base/json/json.h"
#include "parquet/parquet.h"

namespace {

using namespace stoker;
using namespace stoker::archive;
using namespace stoker::codec;
using namespace stoker::parquet;
using nlohmann::json;

std::string hex(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte byte : bytes) {
    text += "0123456789abcdef"[static_cast<unsigned>(byte) >> 4];
    text += "0123456789abcdef"[static_cast<unsigned>(byte) & 15];
  }
  return text;
}
std::string hex(std::string_view text) { return hex(std::as_bytes(std::span(text))); }

json shown(const ParquetValues& values) {
  json found = {{"rows", values.rows},    {"slots", values.slots},     {"numbers", hex(values.numbers)},
                {"texts", json::array()}, {"present", values.present}, {"lists", json::array()}};
  for (std::size_t i = 0; i < values.texts.size(); ++i) found["texts"].push_back(hex(values.texts[i]));
  for (const ParquetValues::List& list : values.lists)
    found["lists"].push_back({{"offsets", list.offsets}, {"present", list.present}});
  return found;
}

json shown(const ParquetRange& range) {
  json found = json::object();
  if (range.min) found["least"] = hex(*range.min);
  if (range.max) found["most"] = hex(*range.max);
  if (range.null_count) found["missing"] = *range.null_count;
  return found;
}

// On an error, the message replaces the column's values.
json shown(const ParquetFile& file, std::size_t leaf) {
  const ParquetLeaf& is = file.leaves()[leaf];
  json found = {{"name", is.name},   {"type", to_text(is.type)},         {"logical", is.logical},
                {"lists", is.lists}, {"may_be_missing", is.is_nullable}, {"groups", json::array()}};
  for (std::size_t group = 0; group < file.groups(); ++group) {
    const auto values = file.read_leaf(group, leaf);
    json& of = found["groups"].emplace_back(values.ok() ? shown(*values) : json::object());
    if (!values.ok()) of["error"] = values.status().to_string();
    if (const auto range = file.range_of(group, leaf)) of["range"] = shown(*range);
  }
  return found;
}

Status run(const std::string& path) {
  STOKER_ASSIGN_OR_RETURN(opened, File::open_read(path));
  STOKER_ASSIGN_OR_RETURN(size, opened.size());
  const ReadAt read = [&opened = opened](std::uint64_t at, std::span<std::byte> out) {
    return opened.read_at(at, out);
  };
  STOKER_ASSIGN_OR_RETURN(file, ParquetFile::open(read, size, "file"));
  json leaves = json::array();
  for (std::size_t leaf = 0; leaf < file.leaves().size(); ++leaf) leaves.push_back(shown(file, leaf));
  std::cout << leaves << "\n";
  return {};
}

}  // namespace

int main(int count, char** words) {
  if (count != 2) return 2;
  const Status done = run(words[1]);
  if (done.ok()) return 0;
  std::cerr << done.to_string() << "\n";
  return 1;
}
