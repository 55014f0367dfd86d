#include "view/view.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "base/say.h"
#include "base/text.h"
#include "system/calls.h"
#include "system/launch.h"
#include "system/page_server.h"
#include "system/signals.h"

namespace luaspy {
namespace {

struct Viewable {
  std::string_view ending, type;
  std::string_view site;  // a web page that shows such files, with the file's address at its end; "": the browser does
  std::string_view origin;
};
constexpr std::array viewables = {
    Viewable{".html", "text/html; charset=utf-8", "", ""},
    Viewable{".svg", "image/svg+xml", "", ""},
    Viewable{".firefox.json", "application/json", "https://profiler.firefox.com/from-url/",
             "https://profiler.firefox.com"},
    Viewable{".json", "application/json", "https://www.speedscope.app/#profileURL=", "https://www.speedscope.app"},
};

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

bool has_display() { return !environment("DISPLAY").empty() || !environment("WAYLAND_DISPLAY").empty(); }

// The end of an address needs no escapes then.
std::string plain(std::string name) {
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.' && c != '-') c = '_';
  }
  return name;
}

Result<int> serve(const PageViewOptions& options, const Viewable& how, FileDescriptor file) {
  const std::string name = plain(std::filesystem::path(options.file).filename().string());
  Result<system::PageServer> server = system::PageServer::open(
      {std::move(file), name, std::string(how.type), std::string(how.origin)}, options.port);
  if (!server) return server.error();
  system::watch_signals();
  const std::string address = fmt::format("http://127.0.0.1:{}{}", server->port(), server->path());
  fmt::print("{}\n", how.site.empty() ? address : fmt::format("{}{}", how.site, url_escaped(address)));
  (void)std::fflush(stdout);
  say("luaspy: that is the address, for browsers on this machine; Ctrl-C ends it. For those elsewhere, first:\n"
      "  ssh -N -L {0}:127.0.0.1:{0} {1}{2}\n",
      server->port(), environment("USER").empty() ? "" : environment("USER") + "@", system::host_name());
  server->run();
  return 0;
}

}  // namespace

Result<int> view(const PageViewOptions& options) {
  const auto how = std::ranges::find_if(viewables,
                                        [&](const Viewable& each) { return options.file.ends_with(each.ending); });
  if (how == viewables.end())
    return Error{Cause::usage, fmt::format("{} is nothing that a browser shows. A recording becomes a page with: "
                                           "luaspy report {} -o page.html",
                                           printable(options.file), shell_word(options.file))};
  system::Failure failure;
  FileDescriptor file = system::open_file(options.file, O_RDONLY | O_NONBLOCK, &failure);
  if (!file) return Error{Cause::usage, fmt::format("Cannot read {}: {}.", printable(options.file), failure.text())};
  if (!std::filesystem::is_regular_file(fmt::format("/proc/self/fd/{}", file.number())))
    return Error{Cause::usage, fmt::format("{} is not a file.", printable(options.file))};
  const bool opens = !options.serve && how->site.empty() && has_display();
  if (opens && system::start_apart({"xdg-open", std::filesystem::absolute(options.file).string()})) {
    say("luaspy: {} is opened by xdg-open\n", printable(options.file));
    return 0;
  }
  if (opens) say("luaspy: xdg-open has not opened it\n");
  return serve(options, *how, std::move(file));
}

}  // namespace luaspy
