#include "report/html/frame.h"

#include "base/encode.h"
#include "base/version.h"
#include "report/html/markup.h"
#include "stoker/text.h"

namespace stoker::report::html {

namespace {

std::string policy_of(std::span<const std::string_view> contents) {
  std::string policy;
  for (const std::string_view content : contents) policy += format(" '{}'", policy_hash(content));
  return policy;
}

}  // namespace

std::string page_head(std::string_view title, std::span<const std::string_view> styles,
                      std::span<const std::string_view> scripts) {
  std::string out = "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n";
  out += format(
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src{}; "
      "script-src{}; img-src data:\">\n",
      policy_of(styles), policy_of(scripts));
  out += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
  out += "<meta name=\"generator\" content=\"stoker " + escape_html(version()) + "\">\n";
  out += element("title", "", title);
  for (const std::string_view style : styles) out += "\n<style>" + std::string(style) + "</style>";
  return out + "</head>\n<body>\n";
}

std::string page_end(std::span<const std::string_view> scripts) {
  std::string out;
  for (const std::string_view script : scripts) out += "<script>" + std::string(script) + "</script>\n";
  return out + "</body></html>\n";
}

}  // namespace stoker::report::html
