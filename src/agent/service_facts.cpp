#include "agent/service_facts.h"

#include <algorithm>
#include <cctype>
#include <fstream>

#include "attach/proc_files.h"
#include "base/text.h"

namespace luaspy {
namespace {

constexpr std::size_t longest = 255;  // of a service's name

bool is_hex(char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; }

// The first so many characters in a row for which `fits`, with none before and behind.
template <typename Fits>
std::string_view run_of(std::string_view text, std::size_t length, const Fits& fits) {
  for (std::size_t begin = 0; begin < text.size();) {
    if (!fits(text[begin])) {
      ++begin;
      continue;
    }
    std::size_t end = begin;
    while (end < text.size() && fits(text[end])) ++end;
    if (end - begin == length) return text.substr(begin, length);
    begin = end;
  }
  return {};
}

// docker-ID.scope, cri-containerd-ID.scope, libpod-ID.scope, /docker/ID
std::string container_in(std::string_view path) {
  constexpr std::size_t digits = 64;
  return std::string(run_of(path, digits, is_hex));
}

// …-podUID.slice of systemd, with _ for -; /podUID of others.
std::string pod_in(std::string_view path) {
  constexpr std::size_t uid = 36;
  for (std::size_t at = path.find("pod"); at != std::string_view::npos; at = path.find("pod", at + 1)) {
    std::string text(path.substr(at + 3, uid));
    std::ranges::replace(text, '_', '-');
    const bool fits = text.size() == uid && std::ranges::count(text, '-') == 4 &&
                      std::ranges::all_of(text, [](char c) { return is_hex(c) || c == '-'; });
    if (fits) return text;
  }
  return {};
}

// The innermost NAME.service.
std::string unit_in(std::string_view path) {
  constexpr std::string_view ending = ".service";
  std::string unit;
  while (!path.empty()) {
    const std::string_view part = path.substr(0, path.find('/'));
    path.remove_prefix(std::min(part.size() + 1, path.size()));
    // user@1000.service is a session, and not what runs in it
    if (part.ends_with(ending) && !part.starts_with("user@")) unit = part.substr(0, part.size() - ending.size());
  }
  return unit;
}

std::string variable(std::string_view environment, std::string_view name) {
  while (!environment.empty()) {
    const std::string_view each = environment.substr(0, environment.find('\0'));
    environment.remove_prefix(std::min(each.size() + 1, environment.size()));
    if (each.starts_with(name) && each.substr(name.size()).starts_with('='))
      return printable(each.substr(name.size() + 1), longest);
  }
  return {};
}

std::string beginning_of(pid_t pid, std::string_view file) {
  constexpr std::streamsize most = 1 << 18;
  std::ifstream in(proc_path(pid, file), std::ios::binary);
  std::string text(most, '\0');
  in.read(text.data(), most);
  text.resize(static_cast<std::size_t>(in.gcount()));
  return text;
}

}  // namespace

ServiceFacts facts_in(std::string_view cgroups, std::string_view environment) {
  ServiceFacts facts;
  facts.service = variable(environment, "OTEL_SERVICE_NAME");
  while (!cgroups.empty()) {  // "0::/system.slice/nginx.service"; of version 1 a line for each controller
    const std::string_view line = cgroups.substr(0, cgroups.find('\n'));
    cgroups.remove_prefix(std::min(line.size() + 1, cgroups.size()));
    const std::size_t second = line.find(':', line.find(':') + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view path = line.substr(second + 1);
    if (facts.container.empty()) facts.container = container_in(path);
    if (facts.pod.empty()) facts.pod = pod_in(path);
    if (facts.service.empty()) facts.service = printable(unit_in(path), longest);
  }
  return facts;
}

ServiceFacts facts_of(pid_t pid) { return facts_in(beginning_of(pid, "cgroup"), beginning_of(pid, "environ")); }

OtlpAttributes attributes_of(const ServiceFacts& facts, const std::string& command) {
  OtlpAttributes all = {{"service.name", facts.service.empty() ? printable(command, longest) : facts.service}};
  if (!facts.container.empty()) all.emplace_back("container.id", facts.container);
  if (!facts.pod.empty()) all.emplace_back("k8s.pod.uid", facts.pod);
  return all;
}

}  // namespace luaspy
