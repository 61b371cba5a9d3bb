#include "sources/order_hash.h"

#include "base/hashes/splitmix64.h"

namespace stoker::sources {

namespace {

// FNV-1a: distributes keys evenly after mixing, and needs no secret.
std::uint64_t add(std::uint64_t hash, std::string_view text) {
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return hash;
}

}  // namespace

std::uint64_t order_hash(const PackSource& source, const SourceSample& sample, std::uint64_t seed) {
  const std::string_view member = source.folders[sample.folder].member;
  std::uint64_t hash = add(0xCBF29CE484222325u, member);
  if (!member.empty()) hash = add(hash, "/");
  hash = splitmix64(add(hash, basename_of(source.file(sample, 0).name)));
  return seed == 0 ? hash : splitmix64(hash ^ splitmix64(seed * kSplitMix64Increment));
}

}  // namespace stoker::sources
