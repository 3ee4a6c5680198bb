// What: lets long work end early, when Python has a signal (Ctrl-C) or the caller says so.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>

#include "linkstream/engine.hpp"

// Lets Python handle its signals about 20 times a second; rethrows the exception of a handler.
class Signals {
 public:
  void operator()() {
    if (!due()) return;
    const nanobind::gil_scoped_acquire held;
    check();
  }

  bool due() const { return Clock::now() - last_ >= std::chrono::milliseconds(50); }

  // With the GIL held.
  void check() {
    if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
    last_ = Clock::now();
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point last_ = Clock::now();
};

// Also calls `stop`, a callable without arguments; None: never.
inline linkstream::Stop stop_of(nanobind::handle stop) {
  if (stop.is_none()) return {};
  return [stop, signals = Signals()]() mutable {
    if (!signals.due()) return false;
    const nanobind::gil_scoped_acquire held;
    signals.check();
    return nanobind::cast<bool>(stop());
  };
}

// For work that changes nothing: it ends if a signal handler raises.
inline linkstream::Stop stop_by_signal() {
  return [signals = Signals()]() mutable {
    signals();
    return false;
  };
}
