#include "job/train_settings.h"

#include <array>

namespace stoker::job {
namespace {

using config::bind;
using config::Setting;

// `Member` of the part of the job file with the helper's name.
template <auto Member>
consteval JobSetting train(Setting setting) {
  return bind<&Job::train, Member>(setting);
}
template <auto Member>
consteval JobSetting image(Setting setting) {
  return bind<&Job::train, &TrainOptions::image, Member>(setting);
}
template <auto Member>
consteval JobSetting gpt(Setting setting) {
  return bind<&Job::train, &TrainOptions::gpt, Member>(setting);
}
template <auto Member>
consteval JobSetting mlp(Setting setting) {
  return bind<&Job::train, &TrainOptions::mlp, Member>(setting);
}

constexpr std::array kTask = {
    train<&TrainOptions::model>(
        {.key = "train.model",
         .help = "Built-in model to train, or torchscript for your own model in `file`."}),
    train<&TrainOptions::file>(
        {.key = "train.file",
         .unset = "a built-in model",
         .help =
             "File saved by torch.jit.script or torch.jit.trace: an image model with its initial weights."}),
    train<&TrainOptions::classes>(
        {.key = "train.classes",
         .unset = "the number of classes in the training and validation data",
         .at_least = 1,
         .at_most = 1e6,
         .help = "Number of outputs of the model; for gpt the size of the vocabulary (required)."}),
    train<&TrainOptions::heads>(
        {.key = "train.heads",
         .fallback = "1",
         .at_least = 1,
         .at_most = 1000,
         .help = "Residual networks: number of classifiers. Each step trains a randomly chosen one; "
                 "validation averages all of them."}),
    train<&TrainOptions::stochastic_depth>(
        {.key = "train.stochastic_depth",
         .fallback = "0",
         .at_least = 0,
         .at_most = 1,
         .help = "Residual networks: probability of skipping the last block for a training sample; it "
                 "decreases linearly towards the first block."}),
    train<&TrainOptions::find_unused_parameters>(
        {.key = "train.find_unused_parameters",
         .fallback = "false",
         .help = "Detect in every step which parameters have no gradient; always on if `heads` is above 1."}),
    train<&TrainOptions::epochs>({.key = "train.epochs",
                                  .fallback = "10",
                                  .at_least = 1,
                                  .at_most = 1e6,
                                  .help = "Number of passes over the training data."}),
    train<&TrainOptions::steps>({.key = "train.steps",
                                 .unset = "all steps of all epochs",
                                 .at_least = 1,
                                 .at_most = 1e12,
                                 .help = "Stop the training after this many optimizer steps."}),
    train<&TrainOptions::batch>({.key = "train.batch",
                                 .fallback = "32",
                                 .at_least = 1,
                                 .at_most = 65536,
                                 .help = "Number of samples per rank and step."}),
    train<&TrainOptions::accumulate>(
        {.key = "train.accumulate",
         .fallback = "1",
         .at_least = 1,
         .at_most = 65536,
         .help = "Number of batches whose gradients are averaged for one optimizer step."}),
    train<&TrainOptions::drop_last>({.key = "train.drop_last",
                                     .fallback = "false",
                                     .help = "Skip the last batch of an epoch if it is not full."}),
    train<&TrainOptions::shuffle>(
        {.key = "train.shuffle",
         .fallback = "every_epoch",
         .choices = "every_epoch|full|by_shard|by_chunk|none",
         .help = "Order of the training samples: PyTorch's; full, equally random with less memory; mixed "
                 "within windows of shards or packed chunks; none, as stored."}),
    train<&TrainOptions::window>({.key = "train.window",
                                  .unset = "16 with by_shard, 256 with by_chunk",
                                  .at_least = 1,
                                  .at_most = 1e6,
                                  .help = "Number of shards or chunks that are mixed with each other."}),
    train<&TrainOptions::seed>(
        {.key = "train.seed",
         .fallback = "0",
         .at_least = 0,
         .help = "Seed of the initial weights, the order of samples, crops and flips."}),
    train<&TrainOptions::training_data>(
        {.key = "train.training_data", .fallback = "train", .help = "Entry of `data` to train on."}),
    train<&TrainOptions::validation_data>({.key = "train.validation_data",
                                           .unset = "`validation` if `data` has it, else no validation",
                                           .help = "Entry of `data` to validate on."}),
    train<&TrainOptions::validate_every>({.key = "train.validate_every",
                                          .fallback = "1",
                                          .at_least = 0,
                                          .at_most = 1e6,
                                          .help = "Number of epochs between validations; 0 for none."}),
    train<&TrainOptions::validation_batch>({.key = "train.validation_batch",
                                            .unset = "`train.batch`",
                                            .at_least = 1,
                                            .at_most = 65536,
                                            .help = "Number of samples per rank and step of validation."}),
};

constexpr std::array kComputing = {
    train<&TrainOptions::device>(
        {.key = "train.device",
         .fallback = "auto",
         .help =
             "Where the model is trained: cuda needs a GPU and a torch built for CUDA, auto uses a GPU if "
             "both are there, else the CPU."}),
    train<&TrainOptions::cuda_graph>(
        {.key = "train.cuda_graph",
         .fallback = "auto",
         .help = "On GPUs, auto captures a step after its first repetitions and replays it, which saves most "
                 "of the launch time; a step that cannot be captured runs as with never."}),
    train<&TrainOptions::precision>(
        {.key = "train.precision",
         .fallback = "fp32",
         .help = "bf16, fp16: matrix products and convolutions in 16 bits (autocast); weights stay "
                 "float32. fp16 scales the loss and skips steps whose gradients overflow."}),
    train<&TrainOptions::channels_last>(
        {.key = "train.channels_last",
         .fallback = "false",
         .help = "Store images with the channels of each pixel next to each other (NHWC)."}),
    train<&TrainOptions::deterministic>(
        {.key = "train.deterministic",
         .fallback = "false",
         .help = "Refuse operations that have no deterministic implementation; on GPUs also no fused "
                 "optimizer and no choice of the fastest convolution."}),
    train<&TrainOptions::tf32>(
        {.key = "train.tf32",
         .fallback = "false",
         .help =
             "Allow GPUs to round float32 to TF32 in matrix products and convolutions; no effect on CPUs."}),

    image<&ImageOptions::size>(
        {.key = "train.image.size",
         .unset = "32 for cifar models, else 224",
         .at_least = 8,
         .at_most = 1024,
         .help = "Width and height, in pixels, of the images that the model receives."}),
    image<&ImageOptions::validation_resize>(
        {.key = "train.image.validation_resize",
         .unset = "`size` for cifar models, else 8/7 of it",
         .at_least = 8,
         .at_most = 2048,
         .help = "Length of the shorter side before the centre crop in validation."}),
    image<&ImageOptions::crop>(
        {.key = "train.image.crop",
         .unset = "pad for cifar models, else resize",
         .help = "Training crop: none (centre), pad (random position in the padded image) or resize "
                 "(random part, scaled)."}),
    image<&ImageOptions::padding>({.key = "train.image.padding",
                                   .fallback = "4",
                                   .at_least = 0,
                                   .at_most = 256,
                                   .help = "Pixels added on every side for the crop `pad`."}),
    image<&ImageOptions::flip>({.key = "train.image.flip",
                                .fallback = "true",
                                .help = "Flip half of the training images horizontally, at random."}),
    image<&ImageOptions::mean>(
        {.key = "train.image.mean",
         .unset = "CIFAR-10's for cifar models, else ImageNet's",
         .at_least = 0,
         .at_most = 1,
         .help = "Mean of each channel (red, green, blue), subtracted from values in 0 to 1."}),
    image<&ImageOptions::standard_deviation>({.key = "train.image.standard_deviation",
                                              .unset = "CIFAR-10's for cifar models, else ImageNet's",
                                              .at_least = 1e-6,
                                              .at_most = 1,
                                              .help = "Divisor for each channel."}),

    gpt<&GptOptions::layers>({.key = "train.gpt.layers",
                              .fallback = "6",
                              .at_least = 1,
                              .at_most = 1000,
                              .help = "Number of blocks of gpt."}),
    gpt<&GptOptions::heads>({.key = "train.gpt.heads",
                             .fallback = "6",
                             .at_least = 1,
                             .at_most = 1000,
                             .help = "Number of attention heads of each block; must divide `width`."}),
    gpt<&GptOptions::width>({.key = "train.gpt.width",
                             .fallback = "384",
                             .at_least = 1,
                             .at_most = 65536,
                             .help = "Size of a token's embedding."}),
    gpt<&GptOptions::length>(
        {.key = "train.gpt.length",
         .fallback = "256",
         .at_least = 1,
         .at_most = 65536,
         .help = "Number of tokens in a sequence; each sample of a batch is one sequence."}),
    gpt<&GptOptions::component>(
        {.key = "train.gpt.component",
         .fallback = "bin",
         .help = "File extension of the samples' files that hold tokens: numbers only, or .npy arrays."}),
    gpt<&GptOptions::stored>(
        {.key = "train.gpt.stored",
         .fallback = "u16",
         .choices = "u8|u16|u32|i32|i64",
         .help = "Data type of the stored tokens, little-endian; .npy files have their own."}),

    mlp<&MlpOptions::hidden>({.key = "train.mlp.hidden",
                              .unset = "[256, 256]",
                              .at_least = 1,
                              .at_most = 1e6,
                              .help = "Sizes of mlp's hidden layers."}),
    mlp<&MlpOptions::columns>(
        {.key = "train.mlp.columns",
         .unset = "the sample's .npy array",
         .help = "Names of the numbers in each sample's JSON that are the input of mlp."}),
    mlp<&MlpOptions::component>(
        {.key = "train.mlp.component",
         .unset = "the only array",
         .help = "File extension of the sample's array that is the input of mlp, as in features.npy."}),

    train<&TrainOptions::backend>(
        {.key = "train.backend",
         .fallback = "auto",
         .choices = "auto|nccl|shm|gloo",
         .help = "Communication backend for gradients: nccl connects GPUs, shm uses shared memory within one "
                 "host, gloo uses TCP. auto uses nccl where each rank has another GPU, else shm within "
                 "hosts and gloo between them."}),
    train<&TrainOptions::sync_batch_norm>(
        {.key = "train.sync_batch_norm",
         .fallback = "false",
         .help = "Compute mean and variance of batch norm over the batches of all ranks."}),
    train<&TrainOptions::compress_gradients>(
        {.key = "train.compress_gradients",
         .fallback = "none",
         .help = "Data type that gradients are rounded to for communication between ranks, to halve the "
                 "data volume."}),
    train<&TrainOptions::bucket>(
        {.key = "train.bucket",
         .fallback = "25MiB",
         .at_least = 4096,
         .at_most = 1e12,
         .help = "Approximate size of the buckets in which gradients are reduced during the backward pass."}),
    train<&TrainOptions::threads>({.key = "train.threads",
                                   .fallback = "0",
                                   .at_least = 0,
                                   .at_most = 4096,
                                   .help = "Compute threads per rank; 0 for one per available core."}),
    train<&TrainOptions::num_workers>({.key = "train.num_workers",
                                       .fallback = "1",
                                       .at_least = 1,
                                       .at_most = 256,
                                       .help = "Decoder threads per rank."}),
    train<&TrainOptions::prefetch>({.key = "train.prefetch",
                                    .fallback = "4",
                                    .at_least = 1,
                                    .at_most = 1024,
                                    .help = "Number of batches to prepare ahead of the current step."}),
    train<&TrainOptions::chunk_cache>(
        {.key = "train.chunk_cache",
         .fallback = "256MiB",
         .at_least = 0,
         .at_most = 1e15,
         .help = "Cache per rank and dataset for decompressed chunks of HDF5, Zarr and Parquet files."}),
    train<&TrainOptions::print_every>({.key = "train.print_every",
                                       .fallback = "20",
                                       .at_least = 1,
                                       .at_most = 1e9,
                                       .help = "Number of steps between progress lines."}),
};

}  // namespace

std::span<const JobSetting> train_task_settings() { return kTask; }

std::span<const JobSetting> train_computing_settings() { return kComputing; }

}  // namespace stoker::job
