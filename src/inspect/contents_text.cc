#include "inspect/contents_text.h"

#include <vector>

#include "base/json/json.h"
#include "base/language/counted.h"
#include "base/table.h"
#include "sources/shard_scan.h"

namespace stoker::inspect {
namespace {

using nlohmann::ordered_json;
using Part = FileContents::Part;

// "300x8"; "one" for a scalar.
std::string sizes_text(const std::vector<std::uint64_t>& sizes) {
  std::string text;
  for (const std::uint64_t size : sizes) text += (text.empty() ? "" : "x") + std::to_string(size);
  return text.empty() ? "one" : text;
}

std::string_view noun_of(FileContents::Layout layout) {
  constexpr std::string_view kNouns[] = {"array", "column", "kind"};
  return kNouns[static_cast<std::size_t>(layout)];
}

std::vector<std::string> row_of(const Part& part, FileContents::Layout layout) {
  const std::string name = part.name.empty() ? "-" : printable(part.name);
  if (layout == FileContents::Layout::files) return {name, grouped(part.files), rounded({part.bytes})};
  if (layout == FileContents::Layout::columns) return {name, part.type};
  if (!part.shape) return {name, "?", "not read", ""};
  return {name, sizes_text(*part.shape), part.type, part.chunks.empty() ? "-" : sizes_text(part.chunks)};
}

std::vector<std::string> header_of(FileContents::Layout layout) {
  if (layout == FileContents::Layout::files) return {"KIND", "FILES", "SIZE"};
  if (layout == FileContents::Layout::columns) return {"COLUMN", "TYPE"};
  return {"ARRAY", "SHAPE", "TYPE", "CHUNKS"};
}

std::string head_text(const FileContents& contents) {
  std::string text = contents.kind;
  if (contents.bytes > 0) text += ", " + rounded({contents.bytes});
  if (contents.rows) {
    text += format(", {} in {}", counted(*contents.rows, "row"), counted(contents.row_groups, "row group"));
  }
  const std::size_t parts = contents.parts.size() + contents.omitted;
  const std::string_view of = contents.layout == FileContents::Layout::files ? " of files" : "";
  return text + format(", {} {}{}{}", grouped(parts), noun_of(contents.layout), parts == 1 ? "" : "s", of);
}

// The command that converts the file to a dataset.
std::string cure_for(const Path& file) {
  const Path folder = file.has_parent_path() ? file.parent_path() : Path(".");
  const std::string name = file.filename().string();
  if (sources::is_shard(name) || sources::is_numpy_file(name))
    return format("stoker data index {}", shell_quote(folder.string()));
  return format("stoker data pack {} OUT", shell_quote(file.string()));
}

}  // namespace

std::string contents_text(const Path& file, const FileContents& contents) {
  std::string text = format("{}: {}\n", printable(file.string()), head_text(contents));
  std::vector<std::vector<std::string>> rows;
  for (const Part& part : contents.parts) rows.push_back(row_of(part, contents.layout));
  text += table_text(header_of(contents.layout), rows);
  if (contents.omitted > 0) text += format("and {} more\n", grouped(contents.omitted));
  for (const Part& part : contents.parts) {
    if (!part.unreadable.empty()) text += format("not read: {}\n", printable(part.unreadable));
  }
  return text + format("no dataset yet; to make one: {}\n", cure_for(file));
}

std::string contents_json(const Path& file, const FileContents& contents) {
  ordered_json parts = ordered_json::array();
  for (const Part& part : contents.parts) {
    ordered_json one = {{"name", printable(part.name)}};
    if (!part.unreadable.empty()) {
      one["unreadable"] = printable(part.unreadable);
    } else if (contents.layout == FileContents::Layout::files) {
      one["files"] = part.files;
      one["bytes"] = part.bytes;
    } else {
      one["type"] = part.type;
    }
    if (part.shape) one["shape"] = *part.shape;
    if (part.shape && !part.chunks.empty()) one["chunks"] = part.chunks;
    parts.push_back(std::move(one));
  }
  ordered_json json = {
      {"file", printable(file.string())}, {"kind", contents.kind}, {"bytes", contents.bytes}};
  if (contents.rows) json.update({{"rows", *contents.rows}, {"row_groups", contents.row_groups}});
  json[std::string(noun_of(contents.layout)) + "s"] = std::move(parts);
  json["omitted"] = contents.omitted;
  return json_text(json);
}

}  // namespace stoker::inspect
