// `train` of a job: the built-in trainer's work, as plain values. Part of job.h, whose words on values hold
// here, too. Thread-compatible values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/text.h"

namespace stoker::job {

enum class Model {
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
enum class GradientCompression { none, fp16, bf16 };
enum class TokenType { u8, u16, u32, i32, i64 };
enum class Anneal { cosine, linear };
enum class Crop { none, pad, resize };
enum class ShuffleKind { every_epoch, full, by_shard, by_chunk, none };
enum class Backend { automatic, shm, gloo };

/// The words of the job file: "cifar-resnet20", "one-cycle", ...
std::string_view to_text(Model model);
std::string_view to_text(OptimizerKind kind);
std::string_view to_text(LrScaling scaling);
std::string_view to_text(ScheduleKind kind);
std::string_view to_text(Precision precision);
std::string_view to_text(GradientCompression compression);
std::string_view to_text(TokenType type);
std::string_view to_text(Anneal anneal);
std::string_view to_text(Crop crop);
std::string_view to_text(ShuffleKind kind);
std::string_view to_text(Backend backend);

/// `train.optimizer`: SGD and AdamW as torch.optim means them. What belongs to another kind is not looked at.
struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::sgd;
  double lr = 0;  ///< the highest of the schedule; before `lr_scaling`
  LrScaling lr_scaling = LrScaling::none;
  double momentum = 0;    ///< of SGD and LARS
  bool nesterov = false;  ///< SGD
  double weight_decay = 0;
  double beta1 = 0;    ///< AdamW and LAMB
  double beta2 = 0;    ///< AdamW and LAMB
  double epsilon = 0;  ///< AdamW and LAMB
  double trust = 0;    ///< LARS
  bool spare_vectors = false;

  friend bool operator==(const OptimizerOptions&, const OptimizerOptions&) = default;
};

/// `train.schedule`: torch.optim.lr_scheduler's words in brackets. The total is epochs x steps.
struct ScheduleOptions {
  ScheduleKind kind = ScheduleKind::one_cycle;
  double warmup = 0;  ///< part of all steps that climbs to the peak (pct_start; LinearLR's total_iters)
  double start_divisor = 0;  ///< first rate = lr / this (div_factor)
  double end_divisor = 0;    ///< last rate = first rate / this (final_div_factor)
  Anneal anneal = Anneal::cosine;
  bool cycle_momentum = false;   ///< momentum runs against the rate, between the two below
  double momentum_low = 0;       ///< (base_momentum)
  double momentum_high = 0;      ///< (max_momentum)
  double end_lr = 0;             ///< cosine (eta_min)
  double factor = 0;             ///< step (gamma)
  std::uint32_t drop_every = 0;  ///< step: epochs (step_size); not looked at with `drop_at`
  std::vector<double> drop_at;   ///< step: epochs, ascending (milestones)

  friend bool operator==(const ScheduleOptions&, const ScheduleOptions&) = default;
};

/// `train.image`: what a sample becomes on its way to the model.
struct ImageOptions {
  std::uint32_t size = 0;               ///< the model sees size x size
  std::uint32_t validation_resize = 0;  ///< shorter side before the centre crop in validation; >= size
  Crop crop = Crop::none;               ///< training only
  std::uint32_t padding = 0;            ///< pixels on every side for Crop::pad
  bool flip = false;                    ///< mirrored left to right with probability 1/2, training only
  std::vector<double> mean;             ///< per channel, of values in 0..1; three
  std::vector<double> standard_deviation;

  friend bool operator==(const ImageOptions&, const ImageOptions&) = default;
};

/// `train.gpt`: the language model's shape and its data. The vocabulary is `train.classes`.
struct GptOptions {
  std::uint32_t layers = 0, heads = 0, width = 0;
  std::uint32_t length = 0;  ///< tokens of a sequence
  std::string component;     ///< the files of a sample that hold tokens
  TokenType stored = TokenType::u16;

  friend bool operator==(const GptOptions&, const GptOptions&) = default;
};

/// `train.mlp`: the perceptron's shape and its data.
struct MlpOptions {
  std::vector<double> hidden;            ///< whole numbers
  std::vector<std::string> columns;      ///< fields of each sample's JSON; empty: its .npy array
  std::optional<std::string> component;  ///< which of a sample's arrays: "features.npy"

  friend bool operator==(const MlpOptions&, const MlpOptions&) = default;
};

/// `train: {...}`: the built-in trainer's work. Present when the ranks execute stoker-train.
struct TrainOptions {
  Model model = Model::resnet18;
  std::optional<Path> file;              ///< absolute; the model `torchscript`
  std::optional<std::uint32_t> classes;  ///< empty: as many as the datasets have
  std::uint32_t heads = 0;               ///< residual networks: classifiers, of which each step uses one
  double stochastic_depth = 0;           ///< residual networks: how often the last block is left out
  bool find_unused_parameters = false;   ///< some may take no part in a step; `heads` above 1 looks anyway
  std::uint32_t epochs = 0;
  std::optional<std::uint64_t> steps;  ///< ends after this many optimizer steps, if epochs do not end before
  std::uint32_t batch = 0;             ///< samples per rank and step, or part of a step with `accumulate`
  std::uint32_t accumulate = 0;        ///< batches whose gradients one optimizer step takes the mean of
  bool drop_last = false;              ///< an epoch's last batch is left out when it is not full
  ShuffleKind shuffle = ShuffleKind::every_epoch;
  std::optional<std::uint32_t> window;  ///< by_shard, by_chunk: so many are mixed with each other
  std::uint64_t seed = 0;
  std::string training_data;                   ///< a name in Job::data
  std::optional<std::string> validation_data;  ///< a name in Job::data; empty: there is no validation
  std::uint32_t validate_every = 0;            ///< epochs; 0 never
  std::uint32_t validation_batch = 0;
  OptimizerOptions optimizer;
  ScheduleOptions schedule;
  std::optional<double> clip_norm;  ///< gradients are scaled down to this norm over all parameters
  std::optional<double> ema;        ///< decay of a mean of the weights, which then is what is validated
  double label_smoothing = 0;
  double mixup = 0;   ///< Beta(mixup, mixup); 0 never
  double cutmix = 0;  ///< the same
  Precision precision = Precision::fp32;
  bool channels_last = false;
  bool deterministic = false;
  bool tf32 = false;
  ImageOptions image;
  GptOptions gpt;
  MlpOptions mlp;
  Backend backend = Backend::automatic;
  bool sync_batch_norm = false;  ///< batch norm takes the batches of all ranks together
  GradientCompression compress_gradients =
      GradientCompression::none;     ///< what they are rounded to on the way
  ByteCount bucket{0};               ///< gradients are exchanged in pieces of about this size
  std::uint32_t threads = 0;         ///< intra-operation threads of one rank; 0: as many as it has cores
  std::uint32_t loader_threads = 0;  ///< decoding threads of one rank
  std::uint32_t prefetch = 0;        ///< batches ready ahead of the step
  ByteCount chunk_cache{0};          ///< unpacked bytes of packed chunks that each dataset keeps
  std::uint32_t print_every = 0;     ///< steps between progress lines of rank 0

  friend bool operator==(const TrainOptions&, const TrainOptions&) = default;
};

}  // namespace stoker::job
