// For tests/test_foreign_fixtures.py: archives FILE prints the members of a tar or zip archive as JSON,
// through the library. Contents are hexadecimal. On an error, the message replaces the content of a member.
#include <iostream>
#include <string>
#include <vector>

#include "archive/decompress_file.h"
#include "archive/detect_archive.h"
#include "archive/tar.h"
#include "archive/zip.h"
#include "base/file.h"
#include "base/json/json.h"

namespace {

using namespace stoker;
using namespace stoker::archive;
using nlohmann::json;

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) {
    text += "0123456789abcdef"[static_cast<unsigned char>(byte) >> 4];
    text += "0123456789abcdef"[static_cast<unsigned char>(byte) & 15];
  }
  return text;
}

std::string_view to_text(TarKind kind) {
  constexpr std::string_view kNames[] = {"file",         "hard_link", "symbolic_link", "character_device",
                                         "block_device", "directory", "fifo"};
  return kNames[static_cast<std::size_t>(kind)];
}

// Names may be no UTF-8.
json shown(std::string_view name, std::string_view kind) { return {{"name", hex(name)}, {"kind", kind}}; }

Result<json> tar_members(const File& file, const std::string& path) {
  STOKER_ASSIGN_OR_RETURN(size, file.size());
  TarReader reader([&](std::uint64_t at, std::span<std::byte> out) { return file.read_at(at, out); }, size,
                   path);
  json found = json::array();
  while (true) {
    STOKER_ASSIGN_OR_RETURN(member, reader.next());
    if (!member) break;
    json& of = found.emplace_back(shown(member->name, to_text(member->kind)));
    of["link"] = hex(member->link);
    std::string content(member->size, '\0');
    STOKER_RETURN_IF_ERROR(file.read_at(member->data_offset, std::as_writable_bytes(std::span(content))));
    of["content"] = hex(content);
  }
  if (!reader.has_end_mark()) return corrupt("{}: has no end-of-archive marker", path);
  return found;
}

Result<json> zip_members(const Path& path) {
  STOKER_ASSIGN_OR_RETURN(opened, open_zip_file(path));
  json found = json::array();
  for (const ZipMember& member : opened.zip.members()) {
    const std::string_view kind = member.is_symbolic_link ? "symbolic_link"
                                  : member.is_folder()    ? "directory"
                                  : member.is_encrypted   ? "encrypted"
                                                          : "file";
    json& of = found.emplace_back(shown(member.name, kind));
    std::string content;
    const Status read = !member.is_readable()
                            ? invalid("method {}", member.method)
                            : opened.zip.unpack(member, [&](std::span<const std::byte> piece) {
                                content.append(reinterpret_cast<const char*>(piece.data()), piece.size());
                                return Status();
                              });
    if (read.ok()) of["content"] = hex(content);
    if (!read.ok()) of["error"] = read.to_string();
  }
  return found;
}

Status run(const Path& path) {
  STOKER_ASSIGN_OR_RETURN(file, File::open_read(path));
  STOKER_ASSIGN_OR_RETURN(format, detect_archive(file, path.string()));
  if (format == ArchiveFormat::none) return invalid("{}: is no archive", path.string());
  if (format == ArchiveFormat::zip) {
    STOKER_ASSIGN_OR_RETURN(members, zip_members(path));
    std::cout << members;
    return {};
  }
  NoProgress progress;
  STOKER_ASSIGN_OR_RETURN(plain, decompress_file(std::move(file), {"/tmp", ByteCount{1u << 30}}, progress));
  STOKER_ASSIGN_OR_RETURN(members, tar_members(plain, path.string()));
  std::cout << members;
  return {};
}

}  // namespace

int main(int count, char** words) {
  if (count != 2) return 2;
  const Status status = run(words[1]);
  if (status.ok()) return 0;
  std::cerr << status.to_string() << "\n";
  return 1;
}
