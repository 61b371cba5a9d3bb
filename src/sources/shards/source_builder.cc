#include "sources/shards/source_builder.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "base/encode.h"
#include "stoker/text.h"

namespace stoker::sources {

namespace {

// A key in the form of pack: "./a/b.c" as "a/b_c", "/a/b" as "a/b". Nullopt for a key that is outside the
// folder, that readers would skip, or that is not UTF-8.
std::optional<std::string> plain_key(std::string_view key) {
  constexpr std::size_t kLongest = 4096;
  while (key.starts_with("./") || key.starts_with('/')) key.remove_prefix(key.starts_with('/') ? 1 : 2);
  if (key.empty() || key.size() > kLongest || !is_utf8(key)) return std::nullopt;
  for (std::string_view part : split(key, '/')) {
    if (part.empty() || part == "." || part == "..") return std::nullopt;
  }
  const std::string_view top = key.substr(0, key.find('/'));
  if (top.size() >= 4 && top.starts_with("__") && top.ends_with("__")) return std::nullopt;
  std::string plain(key);
  std::replace(plain.begin() + static_cast<std::ptrdiff_t>(plain.rfind('/') + 1), plain.end(), '.', '_');
  return plain;
}

}  // namespace

std::uint32_t SourceBuilder::split(const std::string& name) {
  const auto found = std::find(source_.splits.begin(), source_.splits.end(), name);
  if (found != source_.splits.end()) return static_cast<std::uint32_t>(found - source_.splits.begin());
  source_.splits.push_back(name);
  source_.samples.emplace_back();
  keys_.emplace_back();
  return static_cast<std::uint32_t>(source_.splits.size() - 1);
}

Status SourceBuilder::add(std::uint32_t split, std::string_view key, std::int64_t label,
                          std::span<const SourceMember> members, std::string_view where) {
  const std::optional<std::string> plain = plain_key(key);
  if (!plain) return invalid("{}: sample '{}': the key cannot be packed", where, printable(key));
  if (*plain != key)
    ++source_.skipped_fields["original keys (dots become _, ./ and / at the beginning are removed)"];
  if (!keys_[split].insert(*plain).second)
    return invalid("{}: sample '{}' appears twice", where, printable(*plain));
  if (label > std::numeric_limits<std::int32_t>::max()) {
    return invalid("{}: sample '{}': label {} is too large (at most 2147483647)", where, printable(*plain),
                   label);
  }
  const std::size_t slash = plain->rfind('/');
  const std::uint32_t number = folder(split, slash == std::string::npos ? "" : plain->substr(0, slash));
  SourceFolder& folder = source_.folders[number];
  const std::string_view base = std::string_view(*plain).substr(slash + 1);
  source_.samples[split].push_back({.folder = number,
                                    .first = static_cast<std::uint32_t>(folder.files.size()),
                                    .files = static_cast<std::uint32_t>(members.size()),
                                    .label = static_cast<std::int32_t>(std::max<std::int64_t>(-1, label))});
  for (const SourceMember& member : members) {
    if (member.extension.empty() || member.extension.find('/') != std::string_view::npos ||
        !is_utf8(member.extension)) {
      return invalid("{}: sample '{}': '{}' is not an extension", where, printable(*plain),
                     printable(member.extension));
    }
    source_.has_label_files = source_.has_label_files || member.extension == "cls";
    folder.files.push_back({.name = format("{}.{}", base, member.extension),
                            .bytes = member.bytes,
                            .modified_ns = member.stamp,
                            .place = tree_->add_place(member.place)});
    source_.bytes += member.bytes;
    ++source_.files;
  }
  return {};
}

Result<PackSource> SourceBuilder::finish(const Path& where) {
  if (source_.files == 0) return invalid("{}: has no samples", printable(where.string()));
  source_.tree = std::move(tree_);
  return std::move(source_);
}

// The path for messages and left-out.csv: includes the split if there are several.
std::uint32_t SourceBuilder::folder(std::uint32_t split, const std::string& member) {
  const auto [found, is_new] =
      folders_.try_emplace({split, member}, static_cast<std::uint32_t>(source_.folders.size()));
  if (is_new) {
    const std::string& name = source_.splits[split];
    source_.folders.push_back({.path = name == "all" ? member : child(name, member),
                               .member = member,
                               .split = split,
                               .label = -1,
                               .files = {}});
  }
  return found->second;
}

}  // namespace stoker::sources
