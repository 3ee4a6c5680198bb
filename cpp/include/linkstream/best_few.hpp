// What: the best few of many items, by worth; equals by their numbers.
// Invariants: all that is dropped is worth less than the last that is kept, or as much and of higher
//   numbers. Worths that differ by rounding only are all kept, so that a caller who computes them again
//   in another way finds the same best few.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace linkstream {

// Returns the least worth that may be equal to another but for rounding; exact: only that worth itself.
inline double about(double worth, bool exact) {
  constexpr double kRounding = 1e-9;
  return exact ? worth : worth * (1.0 - kRounding);
}

// Items: with `worth`; `figures()`, from which it was computed; and `numbers()`, which differ. Keeps the
// best `few` and those of about the same worth as the last of them.
template <class Item>
void keep_best(std::vector<Item>& items, std::size_t few, bool exact) {
  if (items.size() <= few) return;
  if (few == 0) {
    items.clear();
    return;
  }
  const auto better = [](const Item& one, const Item& other) {
    return one.worth != other.worth ? one.worth > other.worth : one.numbers() < other.numbers();
  };
  const auto last = items.begin() + static_cast<std::ptrdiff_t>(few - 1);
  std::nth_element(items.begin(), last, items.end(), better);
  const Item least = *last;
  const auto dropped = std::remove_if(last + 1, items.end(), [&](const Item& item) {
    return item.figures() == least.figures() || item.worth < about(least.worth, exact);
  });
  items.erase(dropped, items.end());
}

// Items that come one by one, of which the best few are kept.
template <class Item>
class BestFew {
 public:
  BestFew(std::size_t few, bool exact) : few_(few), exact_(exact) {}

  void add(const Item& item) {
    items_.push_back(item);
    if (items_.size() < 2 * few_ + 1024 || items_.size() < pruned_ * 2) return;
    keep_best(items_, few_, exact_);
    pruned_ = items_.size();
  }

  std::vector<Item> take() {
    keep_best(items_, few_, exact_);
    return std::move(items_);
  }

 private:
  std::size_t few_, pruned_ = 0;
  bool exact_;
  std::vector<Item> items_;
};

}  // namespace linkstream
