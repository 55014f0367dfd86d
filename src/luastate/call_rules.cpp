#include "luastate/call_rules.h"

#include <algorithm>
#include <optional>
#include <set>

namespace luaspy {
namespace {

class Recogniser {
 public:
  explicit Recogniser(const CallGraph& graph) : graph_(graph), known_(graph.known.begin(), graph.known.end()) {
    for (const auto& [name, function] : graph.known) named_.insert(function);
    for (const auto& [function, callees] : graph.calls) {
      for (const Address callee : callees) callers_[callee].insert(function);
    }
    leave_out_index();
  }

  std::unordered_map<Address, std::string_view> run(std::span<const CallRule> rules,
                                                    std::span<const std::string_view> never_inlined) {
    for (bool news = true; news;) {
      news = false;
      for (const CallRule& rule : rules) {
        if (known_.contains(rule.name)) continue;
        const std::optional<Address> function = find(rule);
        if (!function) continue;
        known_.emplace(rule.name, *function);
        named_.insert(*function);
        found_.emplace(*function, rule.name);
        news = true;
      }
    }
    const bool is_whole = std::ranges::all_of(never_inlined, [&](std::string_view name) {
      const auto function = known_.find(name);
      return function != known_.end() && !calls(function->second, function->second);
    });
    return is_whole ? std::move(found_) : std::unordered_map<Address, std::string_view>();
  }

 private:
  const std::vector<Address>& callees(Address function) const {
    static const std::vector<Address> none;
    const auto found = graph_.calls.find(function);
    return found != graph_.calls.end() ? found->second : none;
  }
  bool calls(Address caller, Address callee) const {
    return std::ranges::find(callees(caller), callee) != callees(caller).end();
  }
  // 0: it is not known.
  Address known(std::string_view name) const {
    const auto found = known_.find(name);
    return found != known_.end() ? found->second : 0;
  }

  // Nearly all API functions call index2value (5.1: index2adr), which is static. Where a compiler has
  // inlined it, something else may be called by many: so it gets no name.
  void leave_out_index() {
    constexpr int least = 7;
    std::map<Address, int> counts;
    for (const auto& [name, function] : graph_.known) {
      if (!name.starts_with("lua_")) continue;
      for (const Address callee : callees(function)) counts[callee] += named_.contains(callee) ? 0 : 1;
    }
    const auto most = std::ranges::max_element(counts, {}, [](const auto& count) { return count.second; });
    if (most != counts.end() && most->second >= least) named_.insert(index_ = most->first);
  }

  std::optional<Address> find(const CallRule& rule) const {
    std::vector<Address> callers;
    for (const std::string_view name : rule.callers) {
      if (name.empty()) continue;
      callers.push_back(known(name));
      if (callers.back() == 0) return {};
    }
    const std::vector<Address>& first = callees(callers.front());
    if (!rule.beside.empty() && (known(rule.beside) == 0 || !calls(callers.front(), known(rule.beside)))) return {};
    if (rule.also == CallRule::Also::they_only &&
        std::ranges::count_if(first, [&](Address callee) { return callee != index_; }) != 1)
      return {};
    std::optional<Address> only;
    for (const Address callee : first) {
      const auto calls_it = [&](Address caller) { return calls(caller, callee); };
      if (named_.contains(callee) || !std::ranges::all_of(callers, calls_it) || !fits(rule, callee, callers)) continue;
      if (only) return {};
      only = callee;
    }
    return only;
  }
  bool fits(const CallRule& rule, Address callee, const std::vector<Address>& callers) const {
    if (!rule.calls.empty() && (known(rule.calls) == 0 || !calls(callee, known(rule.calls)))) return false;
    const std::set<Address>& of_it = callers_.at(callee);
    if (rule.also == CallRule::Also::two) return of_it.size() <= 2;
    if (rule.also != CallRule::Also::only_they) return true;
    return std::ranges::all_of(
        of_it, [&](Address caller) { return caller == callee || std::ranges::find(callers, caller) != callers.end(); });
  }

  const CallGraph& graph_;
  std::map<std::string_view, Address> known_;
  std::set<Address> named_;  // functions that need no name any more
  Address index_ = 0;
  std::unordered_map<Address, std::set<Address>> callers_;
  std::unordered_map<Address, std::string_view> found_;
};

}  // namespace

std::unordered_map<Address, std::string_view> recognise_by_calls(const CallGraph& graph,
                                                                 std::span<const CallRule> rules,
                                                                 std::span<const std::string_view> never_inlined) {
  return Recogniser(graph).run(rules, never_inlined);
}

}  // namespace luaspy
