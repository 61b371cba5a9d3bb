#include "train/parallel/model_check.h"

#include <algorithm>
#include <map>

#include "base/hash.h"

namespace stoker::train {

namespace {

// How long a failing rank waits for the failures of its peers. They fail at the same time.
constexpr Duration kFailureExchangeTimeout = std::chrono::seconds(2);
constexpr std::size_t kMaxNamed = 5;

std::string described(const NamedTensor& item) {
  std::vector<std::string> sizes;
  for (const std::int64_t size : item.tensor.sizes()) sizes.push_back(std::to_string(size));
  return format("'{}' of {} [{}]", item.name, c10::toString(item.tensor.scalar_type()), join(sizes, ", "));
}

std::string describe(const NamedTensors& parameters, const NamedTensors& buffers) {
  std::string text;
  std::size_t number = 0;
  for (const NamedTensor& item : parameters)
    text += format("parameter {} is {}\n", ++number, described(item));
  number = 0;
  for (const NamedTensor& item : buffers) text += format("buffer {} is {}\n", ++number, described(item));
  return text;
}

// "parameter 3 is 'b' of Float [3]" without the common start of the lines.
std::string_view after_is(std::string_view line) {
  const std::size_t at = line.find(" is ");
  return at == std::string_view::npos ? line : line.substr(at + 4);
}

Status difference(std::string_view first, std::string_view other, std::size_t rank) {
  const auto ours = split(first, '\n'), theirs = split(other, '\n');
  for (std::size_t i = 0; i < std::max(ours.size(), theirs.size()); ++i) {
    const std::string_view here = i < ours.size() ? ours[i] : "";
    const std::string_view there = i < theirs.size() ? theirs[i] : "";
    if (here == there) continue;
    if (here.empty()) return invalid("{} on rank {}, but missing on rank 0", there, rank);
    if (there.empty()) return invalid("{} on rank 0, but missing on rank {}", here, rank);
    const bool same_place = here.substr(0, here.find(" is ")) == there.substr(0, there.find(" is "));
    return invalid("{} on rank 0, but {} on rank {}", here, same_place ? after_is(there) : there, rank);
  }
  return {};
}

std::string list_of(const std::vector<std::string>& names) {
  std::vector<std::string> quoted;
  for (const std::string& name : names) {
    if (quoted.size() == kMaxNamed) break;
    quoted.push_back(format("'{}'", name));
  }
  std::string text = join(quoted, ", ");
  if (names.size() > kMaxNamed) text += format(" and {} more", names.size() - kMaxNamed);
  return text;
}

}  // namespace

// Exchanges checksums first. Full descriptions are exchanged only if checksums differ.
Status compare_models(ProcessGroup& group, const NamedTensors& parameters, const NamedTensors& buffers) {
  const std::string own = describe(parameters, buffers);
  STOKER_ASSIGN_OR_RETURN(checksums, group.all_gather(format("{} {}", own.size(), crc32c(own))));
  if (std::all_of(checksums.begin(), checksums.end(), [&](auto& sum) { return sum == checksums[0]; }))
    return {};
  STOKER_ASSIGN_OR_RETURN(texts, group.all_gather(own));
  for (std::size_t rank = 1; rank < texts.size(); ++rank) {
    STOKER_RETURN_IF_ERROR(difference(texts[0], texts[rank], rank));
  }
  return {};
}

std::vector<std::string> names_without_gradient(std::string_view text, const NamedTensors& parameters) {
  constexpr std::string_view kBefore = "Parameter indices which did not receive grad for rank ";
  std::vector<std::string> names;
  std::size_t at = text.find(kBefore);
  if (at == std::string_view::npos) return names;
  at = text.find(':', at);
  const std::string_view line = text.substr(at + 1, text.find('\n', at) - at - 1);
  for (std::string_view word : split(line, ' ')) {
    std::uint64_t index = 0;
    while (word.ends_with(',')) word.remove_suffix(1);
    if (parse_number(word, &index) && index < parameters.size()) names.push_back(parameters[index].name);
  }
  return names;
}

Status missing_gradient_error(ProcessGroup& group, const std::vector<std::string>& missing) {
  const std::string own = list_of(missing);
  if (!missing.empty()) group.abandon("no gradient for " + own);
  const std::vector<std::string> words = group.collect_failures(own, kFailureExchangeTimeout);
  std::map<std::string, std::vector<std::string>> ranks_of;
  for (std::size_t rank = 0; rank < words.size(); ++rank) {
    if (!words[rank].empty()) ranks_of[words[rank]].push_back(std::to_string(rank));
  }
  if (ranks_of.empty()) return {};
  std::vector<std::string> parts;
  for (const auto& [names, ranks] : ranks_of) {
    parts.push_back(
        format("no gradient for {} on rank{} {}", names, ranks.size() > 1 ? "s" : "", join(ranks, ", ")));
  }
  return invalid(
             "{} (of {} ranks): every parameter must be used in every step unless find_unused_parameters is "
             "on",
             join(parts, "; "), words.size())
      .cure("train: {{find_unused_parameters: true}} (in C++: UnusedParameters::find)");
}

}  // namespace stoker::train
