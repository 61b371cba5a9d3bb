// Files that cannot be read or written: what their messages fit.
#include <gmock/gmock.h>

#include "diagnose/test_logs.h"

namespace stoker::diagnose {
namespace {

using testing::HasSubstr;

TEST(Files, a_write_that_ended_early_fits_a_full_disk_a_quota_and_a_limit) {
  const std::string below =
      "Traceback (most recent call last):\n  File \"train.py\", line 9, in save\n"
      "  File \"/v/site-packages/torch/serialization.py\", line 831, in _save\n    "
      "zip_file.write_record(name)\n";
  for (const std::string& log :
       {kTraceback +
            "RuntimeError: [enforce fail at inline_container.cc:595] . unexpected pos 4096 vs 3990\n",
        kTraceback + "OSError: 1000000 requested and 262144 written\n",
        below + "RuntimeError: basic_ios::clear: iostream error\n"}) {
    const Diagnosis diagnosis = explain_log(log);
    EXPECT_EQ(diagnosis.certainty, Certainty::likely) << log;
    for (const char* cause : {"disk", "quota", "`ulimit -f`"})
      EXPECT_THAT(diagnosis.cause.english(), HasSubstr(cause)) << log;
  }
  // The system names its reason.
  const Diagnosis full =
      explain_log(kTraceback + "OSError: [Errno 28] No space left on device: '/a'\n" + kTraceback +
                  "RuntimeError: [enforce fail at inline_container.cc:595] . unexpected pos 8 vs 0\n");
  EXPECT_EQ(full.rule, "disk-full");
  EXPECT_EQ(full.certainty, Certainty::known);
}

TEST(Files, a_pointer_or_a_page_in_place_of_a_file_is_named) {
  EXPECT_EQ(explain_log(kTraceback + "_pickle.UnpicklingError: invalid load key, 'v'.\n").rule,
            "lfs-pointer");
  EXPECT_EQ(
      explain_log("version https://git-lfs.github.com/spec/v1\n" + kTraceback + "ValueError: no header\n")
          .rule,
      "lfs-pointer");
  EXPECT_EQ(explain_log(kTraceback + "_pickle.UnpicklingError: invalid load key, '<'.\n").rule,
            "page-for-file");
  EXPECT_EQ(explain_log(kTraceback + "_pickle.UnpicklingError: invalid load key, '\\x1f'.\n").rule,
            "checkpoint-unreadable");
  EXPECT_EQ(explain_log(kTraceback + "zipfile.BadZipFile: File is not a zip file\n").certainty,
            Certainty::likely);
}

}  // namespace
}  // namespace stoker::diagnose
