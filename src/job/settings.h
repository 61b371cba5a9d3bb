// Every key of a job file and the member of Job that it fills. The reader, the writer, validation, help,
// docs/job-file.md and the effective file are derived from this list. Constants.
#pragma once

#include <span>

#include "config/bound_setting.h"
#include "config/schema.h"
#include "job/job.h"

/// `every` of `checkpoint`.
template <>
struct stoker::config::FieldType<stoker::job::SaveInterval> {
  static constexpr Type kType = Type::every;
  static job::SaveInterval read(const Value& value);
  static Value write(const job::SaveInterval& field);
};

/// In lower case.
template <>
struct stoker::config::FieldType<stoker::DType> {
  static constexpr Type kType = Type::choice;
  static DType read(const Value& value);
  static Value write(DType field);
};

namespace stoker::job {

using JobSetting = config::BoundSetting<Job>;

/// In job file order.
std::span<const JobSetting> job_settings();
/// The job file's keys.
const config::Schema& schema();

}  // namespace stoker::job
