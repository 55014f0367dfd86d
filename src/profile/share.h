#pragma once
// Shares of samples that have weights, and how far chance may put them from the truth.

namespace luaspy {

// The weights of some samples: their sum, and that of their squares, which tells how much they vary.
struct Weights {
  double sum = 0, squares = 0;
  void add(double weight) { sum += weight, squares += weight * weight; }
  Weights& operator+=(const Weights& others) {
    sum += others.sum, squares += others.squares;
    return *this;
  }
};

// A design effect (Kish) is how many times larger the variance of a share is than that of independent samples.
// Allocations that are sampled one after another are often of the same phase of the program. Measured on
// programs that count themselves (docs/alloc.md): with an effect of 1, one share of 7 was further off than
// was said; with this one, one of 20.
constexpr double design_effect_of_allocations = 1.8;

struct Share {
  double percent = 0;
  double points = 100;  // how far it is from the truth at most, in 95 of 100 recordings, if only chance puts it off
};

// The share that `part` has of `all`, of which it is a part.
Share share_of(const Weights& part, const Weights& all, double design_effect = 1);

}  // namespace luaspy
