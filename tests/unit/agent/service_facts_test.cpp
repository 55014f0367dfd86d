#include "agent/service_facts.h"

#include <catch2/catch.hpp>

namespace luaspy::service_facts_test {
namespace {

const std::string id(64, 'a');
using namespace std::string_literals;

}  // namespace

TEST_CASE("a service is what its environment says, else its unit", "[unit]") {
  const std::string unit = "0::/system.slice/nginx.service\n";
  CHECK(facts_in(unit, "A=b\0OTEL_SERVICE_NAME=shop\0C=d\0"s).service == "shop");
  CHECK(facts_in(unit, "XOTEL_SERVICE_NAME=shop\0OTEL_SERVICE_NAMES=x\0"s).service == "nginx");
  CHECK(facts_in(unit, "OTEL_SERVICE_NAME=\0"s).service == "nginx");
  CHECK(facts_in("0::/user.slice/user-1000.slice/user@1000.service/app.slice/bar.service\n", "").service == "bar");
  CHECK(facts_in("0::/user.slice/user-1000.slice/user@1000.service/init.scope\n", "").service.empty());
  CHECK(facts_in("12:cpu:/\n1:name=systemd:/system.slice/redis-server.service\n", "").service == "redis-server");
  CHECK(facts_in("OTEL", "garbage").service.empty());
  CHECK(facts_in("", "OTEL_SERVICE_NAME=\x1b[31m"s + std::string(5000, 'x')).service.size() < 300);
}

TEST_CASE("containers and pods are known by their cgroup", "[unit]") {
  for (const std::string& path :
       {"/docker/" + id, "/system.slice/docker-" + id + ".scope", "/machine.slice/libpod-" + id + ".scope/container"})
    CHECK(facts_in("0::" + path + "\n", "").container == id);
  CHECK(facts_in("0::/docker/" + id + "b\n", "").container.empty());
  const std::string pod = "01234567-89ab-cdef-0123-456789abcdef";
  const ServiceFacts slice = facts_in(
      "0::/kubepods.slice/kubepods-burstable.slice/"
      "kubepods-burstable-pod01234567_89ab_cdef_0123_456789abcdef.slice/cri-containerd-" +
          id + ".scope\n",
      "");
  CHECK(slice.pod == pod);
  CHECK(slice.container == id);
  CHECK(facts_in("3:memory:/kubepods/besteffort/pod" + pod + "/" + id + "\n", "").pod == pod);
  CHECK(facts_in("0::/podman/podcast-service-without-a-uid-of-a-pod-at-all\n", "").pod.empty());
}

TEST_CASE("attributes are those that are known", "[unit]") {
  CHECK(attributes_of({}, "lua5.4") == OtlpAttributes{{"service.name", "lua5.4"}});
  CHECK(attributes_of({"shop", id, "p"}, "lua5.4") ==
        OtlpAttributes{{"service.name", "shop"}, {"container.id", id}, {"k8s.pod.uid", "p"}});
}

}  // namespace luaspy::service_facts_test
