// Every key a site file may have. The reader, its mistakes and docs/formats/site.md derive from this list.
// Constants.
#pragma once

#include "config/schema.h"

namespace stoker::job {

const config::Schema& site_schema();

}  // namespace stoker::job
