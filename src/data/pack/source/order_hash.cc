#include "data/pack/source/order_hash.h"

#include "data/order/mix.h"

namespace stoker::data {

namespace {

// FNV-1a: spreads keys evenly once mixed, and needs no secret.
std::uint64_t add(std::uint64_t hash, std::string_view text) {
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return hash;
}

}  // namespace

std::uint64_t order_hash(const Source& source, const SourceSample& sample, std::uint64_t seed) {
  const std::string_view member = source.folders[sample.folder].member;
  std::uint64_t hash = add(0xCBF29CE484222325u, member);
  if (!member.empty()) hash = add(hash, "/");
  hash = mix(add(hash, basename_of(source.file(sample, 0).name)));
  return seed == 0 ? hash : mix(hash ^ mix(seed * kGolden));
}

}  // namespace stoker::data
