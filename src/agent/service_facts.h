#pragma once
// What a process is to people who run many: its service, container and pod. Read from what the kernel says of it and
// from the environment that it was started with.

#include <sys/types.h>

#include <string>
#include <string_view>

#include "output/otlp.h"

namespace luaspy {

struct ServiceFacts {
  std::string service;    // OTEL_SERVICE_NAME, or the unit's name; "": neither
  std::string container;  // 64 hexadecimal digits, or ""
  std::string pod;        // Kubernetes' uid of its pod, or ""
};

// `cgroups`: /proc/PID/cgroup (cgroups(7)), of either version. `environment`: /proc/PID/environ, NAME=VALUE\0.
// What a process says of itself is not trusted to be short, or text.
ServiceFacts facts_in(std::string_view cgroups, std::string_view environment);
// Empty where luaspy may not read them.
ServiceFacts facts_of(pid_t pid);

// By OpenTelemetry's semantic conventions, those that are known; service.name always: else `command`.
OtlpAttributes attributes_of(const ServiceFacts& facts, const std::string& command);

}  // namespace luaspy
