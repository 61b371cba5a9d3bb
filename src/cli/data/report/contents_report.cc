#include "cli/data/report/contents_report.h"

#include <vector>

#include "base/json/json.h"
#include "data/look/shard_scan.h"

namespace stoker::cli {
namespace {

using data::FileContents;
using nlohmann::ordered_json;
using Part = FileContents::Part;

// "300x8"; "one" for an array without dimensions.
std::string sizes_text(const std::vector<std::uint64_t>& sizes) {
  std::string text;
  for (const std::uint64_t size : sizes) text += (text.empty() ? "" : "x") + std::to_string(size);
  return text.empty() ? "one" : text;
}

std::string_view noun_of(FileContents::Of of) {
  constexpr std::string_view kNouns[] = {"array", "column", "kind"};
  return kNouns[static_cast<std::size_t>(of)];
}

std::vector<std::string> row_of(const Part& part, FileContents::Of of) {
  const std::string name = part.name.empty() ? "-" : printable(part.name);
  if (of == FileContents::Of::files) return {name, grouped(part.files), rounded({part.bytes})};
  if (of == FileContents::Of::columns) return {name, part.type};
  if (!part.shape) return {name, "?", "not read", ""};
  return {name, sizes_text(*part.shape), part.type, part.chunks.empty() ? "-" : sizes_text(part.chunks)};
}

std::vector<std::string> header_of(FileContents::Of of) {
  if (of == FileContents::Of::files) return {"KIND", "FILES", "SIZE"};
  if (of == FileContents::Of::columns) return {"COLUMN", "TYPE"};
  return {"ARRAY", "SHAPE", "TYPE", "CHUNKS"};
}

std::string head_text(const FileContents& contents) {
  std::string text = contents.kind;
  if (contents.bytes > 0) text += ", " + rounded({contents.bytes});
  if (contents.rows) {
    text += format(", {} rows in {} row {}", grouped(*contents.rows), grouped(contents.row_groups),
                   contents.row_groups == 1 ? "group" : "groups");
  }
  const std::size_t parts = contents.parts.size() + contents.unseen;
  const std::string_view of = contents.of == FileContents::Of::files ? " of files" : "";
  return text + format(", {} {}{}{}", grouped(parts), noun_of(contents.of), parts == 1 ? "" : "s", of);
}

// How it becomes a dataset.
std::string cure_for(const Path& file) {
  const Path folder = file.has_parent_path() ? file.parent_path() : Path(".");
  const std::string name = file.filename().string();
  if (data::is_shard(name) || data::is_numpys(name))
    return format("stoker data index {}", shell_quote(folder.string()));
  return format("stoker data pack {} OUT", shell_quote(file.string()));
}

ordered_json to_json(const Path& file, const FileContents& contents) {
  ordered_json parts = ordered_json::array();
  for (const Part& part : contents.parts) {
    ordered_json one = {{"name", printable(part.name)}};
    if (!part.unread.empty()) {
      one["unread"] = printable(part.unread);
    } else if (contents.of == FileContents::Of::files) {
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
  json[std::string(noun_of(contents.of)) + "s"] = std::move(parts);
  json["unseen"] = contents.unseen;
  return json;
}

}  // namespace

void report_contents(const Path& file, const FileContents& contents, Output& out) {
  out.line("{}: {}", printable(file.string()), head_text(contents));
  std::vector<std::vector<std::string>> rows;
  for (const Part& part : contents.parts) rows.push_back(row_of(part, contents.of));
  out.table(header_of(contents.of), rows);
  if (contents.unseen > 0) out.line("and {} more", grouped(contents.unseen));
  for (const Part& part : contents.parts) {
    if (!part.unread.empty()) out.line("not read: {}", printable(part.unread));
  }
  out.line("no dataset yet; to make one: {}", cure_for(file));
  out.json(json_text(to_json(file, contents)));
}

}  // namespace stoker::cli
