// Choices that the job file, the data loader and the trainer share, with their spelling in a job file.
// Values.
#pragma once

#include <array>
#include <string_view>

namespace stoker {

/// The order of an epoch. Every kind but `none` has a different order in every epoch.
enum class Shuffle {
  none,         ///< 0, 1, 2, ...
  every_epoch,  ///< torch.randperm's, as DistributedSampler: 4 bytes per sample
  full,         ///< any permutation is as likely as with every_epoch, without memory
  by_shard,     ///< shards in random order, samples mixed within a window of them: for slow random reads
  by_chunk,  ///< as by_shard with packed chunks as shards: each is unpacked once, and ranks divide a step by
             ///< chunk (RankShare::slice)
  weighted,  ///< drawn with replacement, by weight
  mixed,     ///< several datasets with fixed shares: see MixturePart
};
constexpr std::array<std::string_view, 7> names_of(Shuffle) {
  return {"none", "every_epoch", "full", "by_shard", "by_chunk", "weighted", "mixed"};
}

/// Shape of the rise and of the fall of a learning rate.
enum class Annealing { cosine, linear };
constexpr std::array<std::string_view, 2> names_of(Annealing) { return {"cosine", "linear"}; }

/// Data type that gradients are rounded to for communication.
enum class Compression {
  none,
  float16,   ///< PyTorch's fp16_compress_hook
  bfloat16,  ///< PyTorch's bf16_compress_hook
};
constexpr std::array<std::string_view, 3> names_of(Compression) { return {"none", "fp16", "bf16"}; }

/// Transport between ranks.
enum class Transport {
  automatic,      ///< shared memory on one host, two levels if some ranks share a host, otherwise gloo
  shared_memory,  ///< fails if ranks are on several hosts
  two_level,      ///< shared memory within each host, gloo between hosts; chosen by `automatic` only
  gloo,           ///< TCP, also within one host
  nccl,           ///< NCCL for tensors on GPUs, and `automatic` for all others
};
constexpr std::array<std::string_view, 5> names_of(Transport) {
  return {"auto", "shm", "two-level", "gloo", "nccl"};
}

}  // namespace stoker
