// Which key is which member of Job: the one list that reading and writing a job share. Used by load.cc and
// to_yaml.cc alone.
#pragma once

#include "job/job.h"

namespace stoker::job {

/// Calls visit(key, member) for every member of `train`, in the order of the job file. `Options` is
/// TrainOptions, const or not.
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
  visit("train.seed", train.seed);
  visit("train.training_data", train.training_data);
  visit("train.validation_data", train.validation_data);
  visit("train.validate_every", train.validate_every);
  visit("train.validation_batch", train.validation_batch);
  visit("train.optimizer.kind", train.optimizer.kind);
  visit("train.optimizer.lr", train.optimizer.lr);
  visit("train.optimizer.lr_scaling", train.optimizer.lr_scaling);
  visit("train.optimizer.momentum", train.optimizer.momentum);
  visit("train.optimizer.nesterov", train.optimizer.nesterov);
  visit("train.optimizer.weight_decay", train.optimizer.weight_decay);
  visit("train.optimizer.beta1", train.optimizer.beta1);
  visit("train.optimizer.beta2", train.optimizer.beta2);
  visit("train.optimizer.epsilon", train.optimizer.epsilon);
  visit("train.optimizer.trust", train.optimizer.trust);
  visit("train.optimizer.spare_vectors", train.optimizer.spare_vectors);
  visit("train.schedule.kind", train.schedule.kind);
  visit("train.schedule.warmup", train.schedule.warmup);
  visit("train.schedule.start_divisor", train.schedule.start_divisor);
  visit("train.schedule.end_divisor", train.schedule.end_divisor);
  visit("train.schedule.anneal", train.schedule.anneal);
  visit("train.schedule.cycle_momentum", train.schedule.cycle_momentum);
  visit("train.schedule.momentum_low", train.schedule.momentum_low);
  visit("train.schedule.momentum_high", train.schedule.momentum_high);
  visit("train.schedule.end_lr", train.schedule.end_lr);
  visit("train.schedule.factor", train.schedule.factor);
  visit("train.schedule.drop_every", train.schedule.drop_every);
  visit("train.schedule.drop_at", train.schedule.drop_at);
  visit("train.clip_norm", train.clip_norm);
  visit("train.ema", train.ema);
  visit("train.label_smoothing", train.label_smoothing);
  visit("train.mixup", train.mixup);
  visit("train.cutmix", train.cutmix);
  visit("train.precision", train.precision);
  visit("train.channels_last", train.channels_last);
  visit("train.deterministic", train.deterministic);
  visit("train.tf32", train.tf32);
  visit("train.image.size", train.image.size);
  visit("train.image.validation_resize", train.image.validation_resize);
  visit("train.image.crop", train.image.crop);
  visit("train.image.padding", train.image.padding);
  visit("train.image.flip", train.image.flip);
  visit("train.image.mean", train.image.mean);
  visit("train.image.standard_deviation", train.image.standard_deviation);
  visit("train.gpt.layers", train.gpt.layers);
  visit("train.gpt.heads", train.gpt.heads);
  visit("train.gpt.width", train.gpt.width);
  visit("train.gpt.length", train.gpt.length);
  visit("train.gpt.component", train.gpt.component);
  visit("train.gpt.stored", train.gpt.stored);
  visit("train.mlp.hidden", train.mlp.hidden);
  visit("train.mlp.columns", train.mlp.columns);
  visit("train.backend", train.backend);
  visit("train.sync_batch_norm", train.sync_batch_norm);
  visit("train.compress_gradients", train.compress_gradients);
  visit("train.bucket", train.bucket);
  visit("train.threads", train.threads);
  visit("train.loader_threads", train.loader_threads);
  visit("train.prefetch", train.prefetch);
  visit("train.print_every", train.print_every);
}

/// The same for the rest of the job: all but name, run, train, environment, and the maps with names of
/// people's own.
template <typename Visitor, typename AnyJob>
void visit_job(Visitor& visit, AnyJob& job) {
  visit("resources.nodes", job.resources.nodes);
  visit("resources.ranks_per_node", job.resources.ranks_per_node);
  visit("resources.ranks", job.resources.ranks);
  visit("resources.cpus_per_rank", job.resources.cpus_per_rank);
  visit("resources.gpus_per_rank", job.resources.gpus_per_rank);
  visit("resources.ranks_per_gpu", job.resources.ranks_per_gpu);
  visit("resources.memory_per_node", job.resources.memory_per_node);
  visit("resources.time", job.resources.time);
  visit("site", job.site);
  visit("slurm.account", job.slurm.account);
  visit("slurm.partition", job.slurm.partition);
  visit("slurm.qos", job.slurm.qos);
  visit("slurm.reservation", job.slurm.reservation);
  visit("slurm.extra", job.slurm.extra);
  visit("code.snapshot", job.code.snapshot);
  visit("code.untracked_limit", job.code.untracked_limit);
  visit("stage.unpack", job.stage.unpack);
  visit("stage.copy", job.stage.copy);
  visit("stage.back", job.stage.back);
  visit("stage.outside_links", job.stage.outside_links);
  visit("stage.directory", job.stage.directory);
  visit("stage.timeout", job.stage.timeout);
  visit("checkpoint.directory", job.checkpoint.directory);
  visit("checkpoint.local", job.checkpoint.local);
  visit("checkpoint.every", job.checkpoint.every);
  visit("checkpoint.mtbf", job.checkpoint.mtbf);
  visit("checkpoint.keep", job.checkpoint.keep);
  visit("checkpoint.keep_every", job.checkpoint.keep_every);
  visit("checkpoint.keep_best", job.checkpoint.keep_best);
  visit("checkpoint.metric", job.checkpoint.metric);
  visit("checkpoint.before_end", job.checkpoint.before_end);
  visit("launcher", job.launcher);
  visit("chain.until", job.chain.until);
  visit("chain.time_per_link", job.chain.time_per_link);
  visit("chain.links", job.chain.links);
  visit("restart.preempted", job.restart.preempted);
  visit("restart.node_failed", job.restart.node_failed);
  visit("restart.timeout", job.restart.timeout);
  visit("restart.failed", job.restart.failed);
  visit("restart.out_of_memory", job.restart.out_of_memory);
  visit("restart.without_progress", job.restart.without_progress);
  visit("array.over", job.array.over);
  visit("array.at_once", job.array.at_once);
  visit("array.bundle", job.array.bundle);
  visit("after", job.after);
  visit("record.directory", job.record.directory);
  visit("record.metrics", job.record.metrics);
  visit("record.receipts", job.record.receipts);
  visit("record.trace", job.record.trace);
  visit("record.sample_every", job.record.sample_every);
  visit("timeouts.start", job.timeouts.start);
  visit("timeouts.stall", job.timeouts.stall);
  visit("timeouts.data", job.timeouts.data);
  visit("timeouts.stopped", job.timeouts.stopped);
  visit("timeouts.communication", job.timeouts.communication);
  visit("timeouts.checkpoint", job.timeouts.checkpoint);
  visit("timeouts.grace", job.timeouts.grace);
}

}  // namespace stoker::job
