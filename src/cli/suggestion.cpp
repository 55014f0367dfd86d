#include "cli/suggestion.h"

#include <algorithm>
#include <vector>

namespace luaspy {
namespace {

// Damerau's and Levenshtein's distance, where no part is changed twice (optimal string alignment).
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> cost(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        cost[i][j] = i + j;
        continue;
      }
      const std::size_t changed = cost[i - 1][j - 1] + (a[i - 1] != b[j - 1] ? 1 : 0);
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, changed});
      const bool exchanged = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (exchanged) cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
    }
  }
  return cost[a.size()][b.size()];
}

}  // namespace

std::string nearest(std::string_view word, std::span<const std::string> choices) {
  constexpr std::size_t longest_word = 64;  // nobody means an option by a longer one
  const std::string* best = nullptr;
  std::size_t least = 0;
  if (word.size() > longest_word) return {};
  for (const std::string& choice : choices) {
    const std::size_t wrong = distance(word, choice);
    const bool starts = word.size() >= 3 && choice.starts_with(word);
    if (!starts && 3 * wrong > std::max(word.size(), choice.size())) continue;
    const std::size_t rank = starts ? 0 : wrong;
    if (best == nullptr || rank < least) best = &choice, least = rank;
  }
  return best != nullptr ? *best : std::string();
}

}  // namespace luaspy
