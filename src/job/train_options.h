// `train` of a job: settings of the built-in trainer, as plain values. Part of job.h, whose conventions
// apply. Thread-compatible values.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/enum_names.h"
#include "stoker/bytes.h"
#include "stoker/choices.h"
#include "stoker/tensor_view.h"
#include "stoker/text.h"

namespace stoker::job {

enum class ModelKind {
  resnet18,
  resnet34,
  resnet50,
  resnet101,
  resnet152,
  cifar_resnet20,
  cifar_resnet32,
  cifar_resnet44,
  cifar_resnet56,
  cifar_resnet110,
  vit_s16,
  gpt,
  mlp,
  torchscript,
};
enum class OptimizerKind { sgd, adamw, lamb, lars };
enum class LrScaling { none, linear, square_root };
enum class ScheduleKind { one_cycle, cosine, step, constant };
enum class Precision { fp32, bf16, fp16 };
enum class Crop { none, pad, resize };
enum class DeviceChoice {
  automatic,  ///< a GPU if there is one
  cpu,
  cuda,
};
enum class CudaGraphs {
  automatic,  ///< steps are captured and replayed where that is possible
  never,
};

// The spellings in the job file, in the enumerators' order. to_text() writes one, enum_named() reads it.
constexpr std::array<std::string_view, 14> names_of(ModelKind) {
  return {"resnet18",
          "resnet34",
          "resnet50",
          "resnet101",
          "resnet152",
          "cifar-resnet20",
          "cifar-resnet32",
          "cifar-resnet44",
          "cifar-resnet56",
          "cifar-resnet110",
          "vit-s16",
          "gpt",
          "mlp",
          "torchscript"};
}
constexpr std::array<std::string_view, 4> names_of(OptimizerKind) { return {"sgd", "adamw", "lamb", "lars"}; }
constexpr std::array<std::string_view, 3> names_of(LrScaling) { return {"none", "linear", "square-root"}; }
constexpr std::array<std::string_view, 4> names_of(ScheduleKind) {
  return {"one-cycle", "cosine", "step", "constant"};
}
constexpr std::array<std::string_view, 3> names_of(Precision) { return {"fp32", "bf16", "fp16"}; }
constexpr std::array<std::string_view, 3> names_of(Crop) { return {"none", "pad", "resize"}; }
constexpr std::array<std::string_view, 3> names_of(DeviceChoice) { return {"auto", "cpu", "cuda"}; }
constexpr std::array<std::string_view, 2> names_of(CudaGraphs) { return {"auto", "never"}; }
using stoker::to_text;  // found by argument-dependent lookup

/// `train.optimizer`: SGD and AdamW as in torch.optim. Values of other kinds are ignored.
struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::sgd;
  double lr = 0;  ///< peak of the schedule; before `lr_scaling`
  LrScaling lr_scaling = LrScaling::none;
  double momentum = 0;    ///< of SGD and LARS
  bool nesterov = false;  ///< SGD
  double weight_decay = 0;
  double beta1 = 0;              ///< AdamW and LAMB
  double beta2 = 0;              ///< AdamW and LAMB
  double epsilon = 0;            ///< AdamW and LAMB
  double trust_coefficient = 0;  ///< LARS
  bool exclude_bias_and_norm = false;

  friend bool operator==(const OptimizerOptions&, const OptimizerOptions&) = default;
};

/// `train.schedule`; names from torch.optim.lr_scheduler in parentheses. The total is epochs x steps.
struct ScheduleOptions {
  ScheduleKind kind = ScheduleKind::one_cycle;
  double warmup =
      0;  ///< fraction of all steps in which the rate rises to its peak (pct_start; LinearLR's total_iters)
  double start_divisor = 0;  ///< first rate = lr / this (div_factor)
  double end_divisor = 0;    ///< last rate = first rate / this (final_div_factor)
  Annealing anneal = Annealing::cosine;
  bool cycle_momentum = false;   ///< the momentum cycles inversely to the rate, between the two below
  double momentum_low = 0;       ///< (base_momentum)
  double momentum_high = 0;      ///< (max_momentum)
  double end_lr = 0;             ///< cosine (eta_min)
  double factor = 0;             ///< step (gamma)
  std::uint32_t drop_every = 0;  ///< step: epochs (step_size); ignored with `drop_at`
  std::vector<double> drop_at;   ///< step: epochs, ascending (milestones)

  friend bool operator==(const ScheduleOptions&, const ScheduleOptions&) = default;
};

/// `train.image`: how a sample is transformed for the model.
struct ImageOptions {
  std::uint32_t size = 0;               ///< the model receives size x size
  std::uint32_t validation_resize = 0;  ///< shorter side before the centre crop in validation; >= size
  Crop crop = Crop::none;               ///< training only
  std::uint32_t padding = 0;            ///< pixels on every side for Crop::pad
  bool flip = false;                    ///< flipped left to right with probability 1/2, training only
  std::vector<double> mean;             ///< per channel, of values in 0..1; three
  std::vector<double> standard_deviation;

  friend bool operator==(const ImageOptions&, const ImageOptions&) = default;
};

/// `train.gpt`: the language model's shape and data. The vocabulary size is `train.classes`.
struct GptOptions {
  std::uint32_t layers = 0, heads = 0, width = 0;
  std::uint32_t length = 0;   ///< tokens of a sequence
  std::string component;      ///< file extension of the samples' files that hold tokens
  DType stored = DType::u16;  ///< u8, u16, u32, i32 or i64

  friend bool operator==(const GptOptions&, const GptOptions&) = default;
};

/// `train.mlp`: the perceptron's shape and data.
struct MlpOptions {
  std::vector<double> hidden;            ///< whole numbers
  std::vector<std::string> columns;      ///< numeric fields of each sample's JSON; empty: its .npy array
  std::optional<std::string> component;  ///< array of a sample, such as "features.npy"

  friend bool operator==(const MlpOptions&, const MlpOptions&) = default;
};

/// `train: {...}`: settings of the built-in trainer. Present if the ranks run stoker-train.
struct TrainOptions {
  ModelKind model = ModelKind::resnet18;
  std::optional<Path> file;              ///< absolute; for the model `torchscript`
  std::optional<std::uint32_t> classes;  ///< empty: the number of classes in the datasets
  std::uint32_t heads = 0;               ///< residual networks: number of classifiers; each step uses one
  double stochastic_depth = 0;           ///< residual networks: probability of skipping the last block
  bool find_unused_parameters = false;   ///< some have no gradient in a step; always on if `heads` is above 1
  std::uint32_t epochs = 0;
  std::optional<std::uint64_t>
      steps;                     ///< stops after this many optimizer steps, unless the epochs end earlier
  std::uint32_t batch = 0;       ///< batch size per rank, or part of a step with `accumulate`
  std::uint32_t accumulate = 0;  ///< number of batches whose gradients are averaged for one optimizer step
  bool drop_last = false;        ///< an epoch's last batch is skipped if it is not full
  Shuffle shuffle = Shuffle::every_epoch;  ///< not weighted, not mixed
  std::optional<std::uint32_t> window;     ///< by_shard, by_chunk: number of shards or chunks that are mixed
  std::uint64_t seed = 0;
  std::string training_data;                   ///< a name in Job::data
  std::optional<std::string> validation_data;  ///< a name in Job::data; empty: no validation
  std::uint32_t validate_every = 0;            ///< epochs; 0 never
  std::uint32_t validation_batch = 0;
  OptimizerOptions optimizer;
  ScheduleOptions schedule;
  std::optional<double> clip_norm;  ///< larger gradients are scaled down to this norm over all parameters
  std::optional<double> ema;        ///< decay of the moving average of the weights, which is then validated
  double label_smoothing = 0;
  double mixup = 0;   ///< Beta(mixup, mixup); 0 never
  double cutmix = 0;  ///< same as mixup
  DeviceChoice device = DeviceChoice::automatic;
  CudaGraphs cuda_graph = CudaGraphs::automatic;
  Precision precision = Precision::fp32;
  bool channels_last = false;
  bool deterministic = false;
  bool tf32 = false;
  ImageOptions image;
  GptOptions gpt;
  MlpOptions mlp;
  Transport backend = Transport::automatic;  ///< not two_level
  bool sync_batch_norm = false;              ///< batch norm statistics over the batches of all ranks
  Compression compress_gradients = Compression::none;  ///< data type for communication
  ByteCount bucket{0};            ///< approximate size of the pieces in which gradients are reduced
  std::uint32_t threads = 0;      ///< intra-operation threads of one rank; 0: one per available core
  std::uint32_t num_workers = 0;  ///< decoder threads of one rank
  std::uint32_t prefetch = 0;     ///< number of batches prepared ahead of the step
  ByteCount chunk_cache{0};       ///< cache of each dataset for decompressed chunks
  std::uint32_t print_every = 0;  ///< number of steps between progress lines of rank 0

  friend bool operator==(const TrainOptions&, const TrainOptions&) = default;
};

}  // namespace stoker::job
