// Maps keys to members of Job; shared by reading and writing. Used only by read_job.cc and job.cc.
#pragma once

#include "job/job.h"

namespace stoker::job {

// Parts of visit_train().
template <typename Visitor, typename Options>
void visit_optimizer(Visitor& visit, Options& options) {
  visit("train.optimizer.kind", options.kind);
  visit("train.optimizer.lr", options.lr);
  visit("train.optimizer.lr_scaling", options.lr_scaling);
  visit("train.optimizer.momentum", options.momentum);
  visit("train.optimizer.nesterov", options.nesterov);
  visit("train.optimizer.weight_decay", options.weight_decay);
  visit("train.optimizer.beta1", options.beta1);
  visit("train.optimizer.beta2", options.beta2);
  visit("train.optimizer.epsilon", options.epsilon);
  visit("train.optimizer.trust_coefficient", options.trust_coefficient);
  visit("train.optimizer.exclude_bias_and_norm", options.exclude_bias_and_norm);
}

template <typename Visitor, typename Options>
void visit_schedule(Visitor& visit, Options& options) {
  visit("train.schedule.kind", options.kind);
  visit("train.schedule.warmup", options.warmup);
  visit("train.schedule.start_divisor", options.start_divisor);
  visit("train.schedule.end_divisor", options.end_divisor);
  visit("train.schedule.anneal", options.anneal);
  visit("train.schedule.cycle_momentum", options.cycle_momentum);
  visit("train.schedule.momentum_low", options.momentum_low);
  visit("train.schedule.momentum_high", options.momentum_high);
  visit("train.schedule.end_lr", options.end_lr);
  visit("train.schedule.factor", options.factor);
  visit("train.schedule.drop_every", options.drop_every);
  visit("train.schedule.drop_at", options.drop_at);
}

template <typename Visitor, typename Options>
void visit_image(Visitor& visit, Options& options) {
  visit("train.image.size", options.size);
  visit("train.image.validation_resize", options.validation_resize);
  visit("train.image.crop", options.crop);
  visit("train.image.padding", options.padding);
  visit("train.image.flip", options.flip);
  visit("train.image.mean", options.mean);
  visit("train.image.standard_deviation", options.standard_deviation);
}

template <typename Visitor, typename Options>
void visit_gpt(Visitor& visit, Options& options) {
  visit("train.gpt.layers", options.layers);
  visit("train.gpt.heads", options.heads);
  visit("train.gpt.width", options.width);
  visit("train.gpt.length", options.length);
  visit("train.gpt.component", options.component);
  visit("train.gpt.stored", options.stored);
}

/// Calls visit(key, member) for every member of `train`, in job file order. `Options` is TrainOptions or
/// const TrainOptions.
template <typename Visitor, typename Options>
void visit_train(Visitor& visit, Options& train) {
  visit("train.model", train.model);
  visit("train.file", train.file);
  visit("train.classes", train.classes);
  visit("train.heads", train.heads);
  visit("train.stochastic_depth", train.stochastic_depth);
  visit("train.find_unused_parameters", train.find_unused_parameters);
  visit("train.epochs", train.epochs);
  visit("train.steps", train.steps);
  visit("train.batch", train.batch);
  visit("train.accumulate", train.accumulate);
  visit("train.drop_last", train.drop_last);
  visit("train.shuffle", train.shuffle);
  visit("train.window", train.window);
  visit("train.seed", train.seed);
  visit("train.training_data", train.training_data);
  visit("train.validation_data", train.validation_data);
  visit("train.validate_every", train.validate_every);
  visit("train.validation_batch", train.validation_batch);
  visit_optimizer(visit, train.optimizer);
  visit_schedule(visit, train.schedule);
  visit("train.clip_norm", train.clip_norm);
  visit("train.ema", train.ema);
  visit("train.label_smoothing", train.label_smoothing);
  visit("train.mixup", train.mixup);
  visit("train.cutmix", train.cutmix);
  visit("train.precision", train.precision);
  visit("train.channels_last", train.channels_last);
  visit("train.deterministic", train.deterministic);
  visit("train.tf32", train.tf32);
  visit_image(visit, train.image);
  visit_gpt(visit, train.gpt);
  visit("train.mlp.hidden", train.mlp.hidden);
  visit("train.mlp.columns", train.mlp.columns);
  visit("train.mlp.component", train.mlp.component);
  visit("train.backend", train.backend);
  visit("train.sync_batch_norm", train.sync_batch_norm);
  visit("train.compress_gradients", train.compress_gradients);
  visit("train.bucket", train.bucket);
  visit("train.threads", train.threads);
  visit("train.num_workers", train.num_workers);
  visit("train.prefetch", train.prefetch);
  visit("train.chunk_cache", train.chunk_cache);
  visit("train.print_every", train.print_every);
}

// Parts of visit_job().
template <typename Visitor, typename Options>
void visit_resources(Visitor& visit, Options& options) {
  visit("resources.nodes", options.nodes);
  visit("resources.ranks_per_node", options.ranks_per_node);
  visit("resources.ranks", options.ranks);
  visit("resources.cpus_per_rank", options.cpus_per_rank);
  visit("resources.gpus_per_rank", options.gpus_per_rank);
  visit("resources.ranks_per_gpu", options.ranks_per_gpu);
  visit("resources.memory_per_node", options.memory_per_node);
  visit("resources.time", options.time);
}

template <typename Visitor, typename Options>
void visit_slurm(Visitor& visit, Options& options) {
  visit("slurm.account", options.account);
  visit("slurm.partition", options.partition);
  visit("slurm.qos", options.qos);
  visit("slurm.reservation", options.reservation);
  visit("slurm.extra", options.extra);
}

template <typename Visitor, typename Options>
void visit_stage(Visitor& visit, Options& options) {
  visit("stage.unpack", options.unpack);
  visit("stage.copy", options.copy);
  visit("stage.back", options.back);
  visit("stage.outside_links", options.outside_links);
  visit("stage.directory", options.directory);
  visit("stage.timeout", options.timeout);
}

template <typename Visitor, typename Options>
void visit_checkpoint(Visitor& visit, Options& options) {
  visit("checkpoint.directory", options.directory);
  visit("checkpoint.local", options.local);
  visit("checkpoint.every", options.every);
  visit("checkpoint.mtbf", options.mtbf);
  visit("checkpoint.keep_last", options.keep_last);
  visit("checkpoint.keep_every", options.keep_every);
  visit("checkpoint.keep_best", options.keep_best);
  visit("checkpoint.metric", options.metric);
  visit("checkpoint.before_end", options.before_end);
}

template <typename Visitor, typename Options>
void visit_restart(Visitor& visit, Options& options) {
  visit("restart.preempted", options.preempted);
  visit("restart.node_failed", options.node_failed);
  visit("restart.timeout", options.timeout);
  visit("restart.failed", options.failed);
  visit("restart.out_of_memory", options.out_of_memory);
  visit("restart.without_progress", options.without_progress);
}

template <typename Visitor, typename Options>
void visit_record(Visitor& visit, Options& options) {
  visit("record.directory", options.directory);
  visit("record.metrics", options.metrics);
  visit("record.receipts", options.receipts);
  visit("record.trace", options.trace);
  visit("record.sample_every", options.sample_every);
}

template <typename Visitor, typename Options>
void visit_timeouts(Visitor& visit, Options& options) {
  visit("timeouts.start", options.start);
  visit("timeouts.stall", options.stall);
  visit("timeouts.data", options.data);
  visit("timeouts.stopped", options.stopped);
  visit("timeouts.communication", options.communication);
  visit("timeouts.checkpoint", options.checkpoint);
  visit("timeouts.grace", options.grace);
}

/// Same, for the rest of the job: everything except name, run, train, environment, and maps with user-defined
/// names.
template <typename Visitor, typename AnyJob>
void visit_job(Visitor& visit, AnyJob& job) {
  visit_resources(visit, job.resources);
  visit("site", job.site);
  visit_slurm(visit, job.slurm);
  visit("code.snapshot", job.code.snapshot);
  visit("code.untracked_limit", job.code.untracked_limit);
  visit_stage(visit, job.stage);
  visit_checkpoint(visit, job.checkpoint);
  visit("launcher", job.launcher);
  visit("chain.until", job.chain.until);
  visit("chain.time_per_link", job.chain.time_per_link);
  visit("chain.links", job.chain.links);
  visit_restart(visit, job.restart);
  visit("array.over", job.array.over);
  visit("array.at_once", job.array.at_once);
  visit("array.bundle", job.array.bundle);
  visit("after", job.after);
  visit_record(visit, job.record);
  visit_timeouts(visit, job.timeouts);
}

}  // namespace stoker::job
