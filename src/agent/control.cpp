#include "agent/control.h"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <utility>

#include "base/text.h"
#include "system/signals.h"

namespace luaspy {
namespace {

constexpr std::string_view ok = "ok\n", error_word = "error ";

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::vector<std::string> default_sockets() {
  std::vector<std::string> places;
  if (const std::string folder = variable("XDG_RUNTIME_DIR"); folder.starts_with('/'))
    places.push_back(folder + "/luaspy-agent.sock");
  if (::geteuid() == 0) places.emplace_back("/run/luaspy/agent.sock");
  return places;
}

}  // namespace

std::string default_socket() {
  // systemd separates several by colons.
  const std::string folder = variable("RUNTIME_DIRECTORY");
  if (folder.starts_with('/')) return folder.substr(0, folder.find(':')) + "/agent.sock";
  const std::vector<std::string> places = default_sockets();
  return places.empty() ? "" : places.front();
}

Result<std::string> ask_agent(const std::string& socket, const std::string& request) {
  constexpr std::chrono::seconds patience(60);
  const std::vector<std::string> places = socket.empty() ? default_sockets() : std::vector{socket};
  if (places.empty()) return Error{Cause::usage, "Say where the agent listens: --socket PATH."};
  Result<std::string> answer = std::string();
  for (const std::string& place : places) {
    answer = system::ask(place, request + '\n', patience);
    if (answer || answer.error().cause == Cause::permission) break;
  }
  if (!answer) return answer.error();
  if (answer->starts_with(ok)) return answer->substr(ok.size());
  if (!answer->starts_with(error_word)) return Error{Cause::output, "The agent did not answer."};
  int cause = 0;
  const char *const begin = answer->data() + error_word.size(), *const all = answer->data() + answer->size();
  const auto [end, failed] = std::from_chars(begin, all, cause);
  std::string text(static_cast<const char*>(end), all);
  text.erase(0, text.find_first_not_of('\n'));
  text.erase(text.find_last_not_of('\n') + 1);
  return Error{failed == std::errc() ? static_cast<Cause>(cause) : Cause::internal, std::move(text)};
}

Result<ListenAddress> parse_address(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  const bool has_host = colon != std::string::npos;
  ListenAddress address = {has_host ? text.substr(0, colon) : "127.0.0.1"};
  if (address.host.starts_with('[') && address.host.ends_with(']'))
    address.host = address.host.substr(1, address.host.size() - 2);
  const char *const begin = text.data() + (has_host ? colon + 1 : 0), *const all = text.data() + text.size();
  const auto [end, failed] = std::from_chars(begin, all, address.port);
  constexpr int last_port = 65535;
  if (failed == std::errc() && end == all && address.port >= 0 && address.port <= last_port && !address.host.empty())
    return address;
  return Error{Cause::usage, fmt::format("{}: it has to be PORT or ADDRESS:PORT", printable(text))};
}

std::string answer_of(const Result<std::string>& result) {
  if (result) return fmt::format("{}{}", ok, *result);
  return fmt::format("{}{}\n{}\n", error_word, static_cast<int>(result.error().cause), result.error().text);
}

Control::Control(std::vector<system::RequestServer::Door> doors)
    : server_(std::move(doors)), thread_(system::thread_without_signals([this] { server_.run(); })) {}

Control::~Control() {
  server_.stop();
  thread_.join();
}

}  // namespace luaspy
