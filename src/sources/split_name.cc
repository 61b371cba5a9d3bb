#include "sources/split_name.h"

#include <algorithm>
#include <vector>

#include "sources/shard_scan.h"
#include "stoker/text.h"

namespace stoker::sources {

namespace {

constexpr std::string_view kDigits = "0123456789";
constexpr std::string_view kHexDigits = "0123456789abcdefABCDEF";
constexpr std::string_view kSeparators = "-_.";

bool consists_of(std::string_view text, std::string_view characters) {
  return !text.empty() && text.find_first_not_of(characters) == std::string_view::npos;
}

bool is_one_of(char c, std::string_view characters) { return characters.find(c) != std::string_view::npos; }

void strip_number(std::string_view& name) {
  while (!name.empty() && is_one_of(name.back(), kDigits)) name.remove_suffix(1);
  while (!name.empty() && is_one_of(name.back(), kSeparators)) name.remove_suffix(1);
}

// "x" of "x.parquet", and of "x.snappy.parquet".
std::string_view strip_format(std::string_view file) {
  file = strip_compression(file);
  for (const std::string_view ending : {".parquet", ".h5", ".hdf5", ".zarr", ".zarr.zip", ".npz"}) {
    if (!file.ends_with(ending)) continue;
    file.remove_suffix(ending.size());
    break;
  }
  for (const std::string_view codec : {".snappy", ".gz", ".gzip", ".zstd", ".zst", ".lz4", ".lz4raw", ".lzo",
                                       ".brotli", ".br", ".uncompressed"}) {
    if (!file.ends_with(codec)) continue;
    file.remove_suffix(codec.size());
    break;
  }
  return file;
}

// Length of a UUID at the beginning of `text`, or 0.
std::size_t uuid_length(std::string_view text) {
  constexpr std::size_t kGroups[] = {8, 4, 4, 4, 12};
  std::size_t at = 0;
  for (const std::size_t digits : kGroups) {
    if (at > 0 && (at >= text.size() || text[at++] != '-')) return 0;
    if (text.size() - at < digits || !consists_of(text.substr(at, digits), kHexDigits)) return 0;
    at += digits;
  }
  const bool is_whole = at == text.size() || is_one_of(text[at], kSeparators);
  return is_whole ? at : 0;
}

// A hash: at least 16 hexadecimal digits, not only decimal ones.
bool is_hash(std::string_view token) {
  constexpr std::size_t kShortest = 16;
  return token.size() >= kShortest && consists_of(token, kHexDigits) && !consists_of(token, kDigits);
}

// The parts of a name between separators, without UUIDs and hashes.
struct NameParts {
  std::vector<std::string_view> parts;
  bool had_identifiers = false;
};

NameParts parts_of(std::string_view name) {
  NameParts found;
  while (!name.empty()) {
    const std::size_t uuid = uuid_length(name);
    const std::size_t end = uuid > 0 ? uuid : std::min(name.find_first_of(kSeparators), name.size());
    const std::string_view part = name.substr(0, end);
    const bool is_identifier = uuid > 0 || is_hash(part);
    if (is_identifier) found.had_identifiers = true;
    if (!is_identifier && !part.empty()) found.parts.push_back(part);
    name.remove_prefix(std::min(end + 1, name.size()));
  }
  return found;
}

bool is_number(std::string_view part) { return consists_of(part, kDigits); }

// "r" and "m" of Hadoop, "tid" of Databricks, "c000" of Spark.
bool is_part_mark(std::string_view part) {
  return part == "r" || part == "m" || part == "tid" || (part.starts_with('c') && is_number(part.substr(1)));
}

// Whether the name has only numbers, identifiers, and marks after Spark's "part".
bool is_part_name(const NameParts& name) {
  const bool is_part = !name.parts.empty() && name.parts[0] == "part";
  return std::all_of(name.parts.begin() + (is_part ? 1 : 0), name.parts.end(), [&](std::string_view part) {
    return is_number(part) || (is_part && is_part_mark(part));
  });
}

// The rest of a name with identifiers: "train-<uuid>" → "train", "<query>_<uuid>" → "".
std::string_view without_identifiers(const NameParts& name) {
  if (name.parts.empty() || is_one_of(name.parts[0].front(), kDigits)) return {};
  const auto mark = std::ranges::find_if(
      name.parts, [](std::string_view part) { return is_number(part) || is_part_mark(part); });
  // The views are of one text.
  const std::string_view last = mark == name.parts.begin() ? *mark : *(mark - 1);
  const char* const begin = name.parts[0].data();
  return {begin, static_cast<std::size_t>(last.data() + last.size() - begin)};
}

}  // namespace

std::string_view strip_compression(std::string_view file) {
  for (std::string_view ending : {".gz", ".zst"}) {
    if (file.ends_with(ending)) return file.substr(0, file.size() - ending.size());
  }
  return file;
}

std::string_view strip_shard_number(std::string_view file) {
  // "-00000-of-01024"
  const std::size_t of = file.rfind("-of-");
  if (of == std::string_view::npos) return {};
  constexpr std::size_t kShortest = 5;
  const auto is_long_number = [](std::string_view text) {
    return text.size() >= kShortest && is_number(text);
  };
  const std::size_t dash = file.substr(0, of).rfind('-');
  if (dash == std::string_view::npos || dash == 0) return {};
  const bool is_counted =
      is_long_number(file.substr(dash + 1, of - dash - 1)) && is_long_number(file.substr(of + 4));
  return is_counted ? file.substr(0, dash) : std::string_view();
}

std::string_view counted_prefix(std::string_view file) {
  std::string_view name = strip_format(file);
  const std::size_t of = name.rfind("-of-");
  if (of == std::string_view::npos) return {};
  std::string_view count = name.substr(of + 4);
  if (const std::size_t dash = count.find('-'); dash != std::string_view::npos) {
    constexpr std::size_t kShortestHash = 8;
    const std::string_view hash = count.substr(dash + 1);
    if (hash.size() < kShortestHash || !consists_of(hash, kHexDigits)) return {};
    count = count.substr(0, dash);
  }
  if (const std::size_t format = count.find('.'); format != std::string_view::npos)
    count = count.substr(0, format);  // "train.00000-of-01024.tar"
  name = name.substr(0, of);
  const std::size_t separator = name.find_last_of(kSeparators);
  if (separator == std::string_view::npos || separator == 0) return {};
  if (!is_number(count) || !is_number(name.substr(separator + 1))) return {};
  return name.substr(0, separator);
}

std::string split_of_shard(std::string_view file) {
  if (is_mds(file)) return "all";  // in MDS the split is the folder
  std::string_view name = strip_format(file);
  if (const std::string_view counted = counted_prefix(file); !counted.empty()) name = counted;
  name = name.substr(0, std::min({name.rfind(".tar"), name.rfind(".tgz"), name.rfind(".tfrecord")}));
  const NameParts parts = parts_of(name);
  const bool is_table = is_parquet(file);
  if (is_part_name(parts) && (is_table || parts.parts.empty() || parts.parts[0] != "part")) return "all";
  if (is_table && parts.had_identifiers) name = without_identifiers(parts);
  strip_number(name);
  return name.empty() ? "all" : std::string(name);
}

}  // namespace stoker::sources
