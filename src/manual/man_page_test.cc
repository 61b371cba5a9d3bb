#include "manual/man_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "manual/test_program.h"
#include "stoker/text.h"

namespace stoker::manual {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(ManPage, a_command_has_all_sections) {
  EXPECT_EQ(command_page(run_command(), "1.2"),
            ".TH \"STOKER\\-RUN\" 1 \"\" \"Stoker 1.2\" \"Stoker manual\"\n"
            ".SH NAME\n"
            "stoker\\-run \\- Run a job\n"
            ".SH SYNOPSIS\n"
            "\\fBstoker run\\fR \\fIJOB\\fR [\\fIoptions\\fR]\n"
            ".SH DESCRIPTION\n"
            "Run a job here.\n"
            ".SH ARGUMENTS\n"
            ".TP\n"
            "\\fIJOB\\fR\n"
            "Job file.\n"
            ".SH OPTIONS\n"
            ".TP\n"
            "\\fB\\-\\-json\\fR\n"
            "Print JSON.\n"
            ".TP\n"
            "\\fB\\-j\\fR, \\fB\\-\\-jobs\\fR \\fIN\\fR\n"
            "Use N threads. Default: 2.\n"
            ".TP\n"
            "\\fB\\-\\-set\\fR \\fIKEY=VALUE\\fR\n"
            "Override a key. May be repeated.\n"
            ".SH EXAMPLES\n"
            ".nf\n"
            "stoker run job.yaml\n"
            ".fi\n"
            ".SH SEE ALSO\n"
            "\\fBstoker\\fR(1)\n");
}

TEST(ManPage, hostile_texts_are_no_requests_and_keep_their_characters) {
  const std::string page = command_page(pack_command(), "1.2");
  EXPECT_THAT(page, HasSubstr(R"(stoker\-data\-pack \- It\(aqs \(dq$HOME\(dq \(gaid\(ga \(rs [x]: y)"));
  EXPECT_THAT(page, HasSubstr("\n\\&.hidden \\[u2192] shards.\n"));
  EXPECT_THAT(page, HasSubstr("[x]: y. Values: tar, o\\(aqdd $(id).\n"));
}

TEST(ManPage, characters_that_troff_interprets_are_escaped) {
  EXPECT_EQ(troff_text("a-b\\c'd`e\"f^g~h"), R"(a\-b\(rsc\(aqd\(gae\(dqf\(hag\(tih)");
  EXPECT_EQ(troff_text("é…𝄞"), R"(\[u00E9]\[u2026]\[u1D11E])");
  EXPECT_EQ(troff_text("two\nlines\x01\xff"), "two lines  ");
}

TEST(ManPage, the_page_of_the_program_lists_commands_exit_codes_files_and_variables) {
  const std::string page = program_page(test_program());
  EXPECT_THAT(page, StartsWith(".TH \"STOKER\" 1 \"\" \"Stoker 1.2\" \"Stoker manual\"\n"));
  EXPECT_THAT(page, HasSubstr(".TP\n\\fBstoker data wait\\fR\nWait.\n"));
  EXPECT_THAT(page, HasSubstr(".SH EXIT STATUS\n.TP\n\\fB0\\fR\nsuccess.\n"));
  EXPECT_THAT(page, HasSubstr(".SH FILES\n.TP\n\\fBjob.yaml\\fR\n"));
  EXPECT_THAT(page, HasSubstr(".SH ENVIRONMENT\n.TP\n\\fBSTOKER_SET_KEY\\fR\n"));
  EXPECT_THAT(page, HasSubstr("\\fBstoker\\-run\\fR(1),\n\\fBstoker\\-data\\-pack\\fR(1),\n"));
}

TEST(ManPage, no_line_begins_with_an_unintended_request) {
  for (const PageFile& page : all_pages(test_program())) {
    for (const std::string_view line : split(page.text, '\n')) {
      if (!line.starts_with('.')) continue;
      const std::string_view request = line.substr(0, line.find(' '));
      EXPECT_TRUE(request == ".TH" || request == ".SH" || request == ".TP" || request == ".PP" ||
                  request == ".nf" || request == ".fi")
          << page.name << ": " << line;
    }
  }
}

TEST(ManPage, files_are_named_after_their_commands) {
  const auto pages = all_pages(test_program());
  ASSERT_EQ(pages.size(), 4u);
  EXPECT_EQ(pages[0].name, "stoker.1");
  EXPECT_EQ(pages[1].name, "stoker-run.1");
  EXPECT_EQ(pages[2].name, "stoker-data-pack.1");
  EXPECT_EQ(pages[3].name, "stoker-data-wait.1");
}

}  // namespace
}  // namespace stoker::manual
