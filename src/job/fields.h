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
  visit("train.classes", train.classes);
  visit("train.epochs", train.epochs);
  visit("train.steps", train.steps);
  visit("train.batch", train.batch);
  visit("train.seed", train.seed);
  visit("train.training_data", train.training_data);
  visit("train.validation_data", train.validation_data);
  visit("train.validate_every", train.validate_every);
  visit("train.validation_batch", train.validation_batch);
  visit("train.optimizer.lr", train.optimizer.lr);
  visit("train.optimizer.momentum", train.optimizer.momentum);
  visit("train.optimizer.nesterov", train.optimizer.nesterov);
  visit("train.optimizer.weight_decay", train.optimizer.weight_decay);
  visit("train.schedule.kind", train.schedule.kind);
  visit("train.schedule.warmup", train.schedule.warmup);
  visit("train.schedule.start_divisor", train.schedule.start_divisor);
  visit("train.schedule.end_divisor", train.schedule.end_divisor);
  visit("train.schedule.anneal", train.schedule.anneal);
  visit("train.schedule.cycle_momentum", train.schedule.cycle_momentum);
  visit("train.schedule.momentum_low", train.schedule.momentum_low);
  visit("train.schedule.momentum_high", train.schedule.momentum_high);
  visit("train.image.size", train.image.size);
  visit("train.image.validation_resize", train.image.validation_resize);
  visit("train.image.crop", train.image.crop);
  visit("train.image.padding", train.image.padding);
  visit("train.image.flip", train.image.flip);
  visit("train.image.mean", train.image.mean);
  visit("train.image.standard_deviation", train.image.standard_deviation);
  visit("train.backend", train.backend);
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
  visit("resources.cpus_per_rank", job.resources.cpus_per_rank);
  visit("resources.gpus_per_rank", job.resources.gpus_per_rank);
  visit("resources.memory_per_node", job.resources.memory_per_node);
  visit("resources.time", job.resources.time);
  visit("slurm.account", job.slurm.account);
  visit("slurm.partition", job.slurm.partition);
  visit("slurm.qos", job.slurm.qos);
  visit("slurm.reservation", job.slurm.reservation);
  visit("slurm.extra", job.slurm.extra);
  visit("checkpoint.directory", job.checkpoint.directory);
  visit("checkpoint.every", job.checkpoint.every);
  visit("checkpoint.keep", job.checkpoint.keep);
  visit("checkpoint.before_end", job.checkpoint.before_end);
  visit("launcher", job.launcher);
  visit("record.directory", job.record.directory);
  visit("record.metrics", job.record.metrics);
  visit("record.receipts", job.record.receipts);
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
