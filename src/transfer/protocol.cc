#include "transfer/protocol.h"

#include <algorithm>
#include <array>

#include "preflight/free_space.h"

namespace stoker::transfer {
namespace {

constexpr std::array<std::string_view, 5> kStates = {"absent", "empty", "dataset", "folder", "other"};
constexpr std::uint64_t kBytesPerKilobyte = 1024;
constexpr std::string_view kSafe = "/._-";

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         kSafe.find(c) != std::string_view::npos;
}

bool is_octal(char c) { return c >= '0' && c <= '7'; }

// The column before the one in percent of a row of `df -P`: what is available.
std::optional<std::uint64_t> available_in(std::string_view row) {
  std::string_view before;
  for (std::string_view column : split(row, ' ')) {
    column = trim(column);
    if (column.empty()) continue;
    std::uint64_t value = 0;
    const bool is_share = column.ends_with('%') || column == "-";
    if (is_share && parse_number(before, &value)) return value;
    before = column;
  }
  return std::nullopt;
}

Status parse_fact(std::string_view line, preflight::FreeSpace& space, std::string& quota, PathFacts& facts) {
  const std::size_t blank = std::min(line.find(' '), line.size());
  const std::string_view key = line.substr(0, blank);
  const std::string_view value = line.substr(std::min(blank + 1, line.size()));
  if (key == "path") {
    facts.path = value;
  } else if (key == "state") {
    const auto found = std::find(kStates.begin(), kStates.end(), value);
    if (found == kStates.end()) return corrupt("unknown state '{}'", printable(value));
    facts.state = static_cast<PathState>(found - kStates.begin());
  } else if (key == "writable") {
    facts.is_writable = true;
  } else if (key == "df") {
    if (const auto kilobytes = available_in(value)) space.bytes = {*kilobytes * kBytesPerKilobyte};
  } else if (key == "inodes") {
    if (const auto files = available_in(value); files && *files > 0) space.files = *files;
  } else if (key == "free-bytes") {
    std::uint64_t bytes = 0;
    if (!parse_number(value, &bytes)) return corrupt("free-bytes '{}'", printable(value));
    space.bytes = {bytes};
  } else if (key == "free-files") {
    std::uint64_t files = 0;
    if (!parse_number(value, &files)) return corrupt("free-files '{}'", printable(value));
    space.files = files;
  } else if (key == "bytes-limited-by") {
    space.bytes_limited_by = value;
  } else if (key == "files-limited-by") {
    space.files_limited_by = value;
  } else if (key == "quota-error") {
    space.quota_error = value;
  } else if (key == "quota") {
    quota += std::string(value) + "\n";
  }
  return {};
}

}  // namespace

std::string encode_path(std::string_view path) {
  std::string word;
  for (const char c : path) {
    if (is_plain(c)) {
      word += c;
    } else {
      const unsigned value = static_cast<unsigned char>(c);
      for (const char digit : {'\\', '0'}) word += digit;
      for (const unsigned shift : {6U, 3U, 0U}) word += static_cast<char>('0' + (value >> shift & 7U));
    }
  }
  return word;
}

Result<std::string> decode_path(std::string_view word) {
  std::string path;
  while (!word.empty()) {
    std::size_t used = 1;
    if (is_plain(word[0])) {
      path += word[0];
    } else if (word.size() >= 5 && word.starts_with("\\0") && word[2] <= '3' &&
               std::all_of(word.begin() + 2, word.begin() + 5, is_octal)) {
      path += static_cast<char>((word[2] - '0') * 64 + (word[3] - '0') * 8 + (word[4] - '0'));
      used = 5;
    } else {
      return corrupt("transfer: invalid request");
    }
    word.remove_prefix(used);
  }
  return path;
}

std::string_view to_text(PathState state) { return kStates[static_cast<std::size_t>(state)]; }

std::string facts_text(const PathFacts& facts) {
  std::string text = format("path {}\nstate {}\n", facts.path, to_text(facts.state));
  if (facts.is_writable) text += "writable\n";
  text += format("free-bytes {}\n", facts.free_bytes);
  if (facts.free_files) text += format("free-files {}\n", *facts.free_files);
  text +=
      format("bytes-limited-by {}\nfiles-limited-by {}\n", facts.bytes_limited_by, facts.files_limited_by);
  if (!facts.quota_error.empty()) text += format("quota-error {}\n", printable(facts.quota_error));
  return text + "end\n";
}

Result<PathFacts> parse_facts(const std::vector<std::string>& lines) {
  PathFacts facts;
  preflight::FreeSpace space;
  bool has_state = false;
  std::string quota_text;
  for (const std::string& line : lines) {
    STOKER_RETURN_IF_ERROR(parse_fact(line, space, quota_text, facts));
    has_state = has_state || line.starts_with("state ");
  }
  if (!facts.path.starts_with('/') || !has_state) return corrupt("no path and state in the answer");
  if (const auto quota = preflight::parse_quota(quota_text)) space = preflight::within_quota(space, *quota);
  facts.free_bytes = space.bytes.value;
  facts.free_files = space.files;
  facts.bytes_limited_by = space.bytes_limited_by;
  facts.files_limited_by = space.files_limited_by;
  facts.quota_error = space.quota_error;
  return facts;
}

}  // namespace stoker::transfer
