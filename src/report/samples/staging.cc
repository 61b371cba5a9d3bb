#include "report/samples/staging.h"

#include "record/staged_data.h"

namespace stoker::report {

void add_staging(int attempt, const record::EventLog& log, RunFacts& facts) {
  if (const auto data = record::staged_data(log)) facts.staging.push_back({attempt, *data});
}

}  // namespace stoker::report
