// What: a few threads that wait for work. Results never depend on how many there are.
// Invariants: `run` returns when all parts are done, and throws what a part threw. Where threads
//   cannot be had (a limit of the system, or a process forked from the one that started them), the
//   parts are done one after the other.
#pragma once

#include <unistd.h>

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace linkstream {

class Pool {
 public:
  using Work = std::function<void(std::size_t)>;

  explicit Pool(std::size_t parts) : parts_(parts < 1 ? 1 : parts) {}
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  ~Pool() {
    if (!threads_here()) {
      for (std::thread& thread : threads_) thread.detach();  // they live in another process
      return;
    }
    {
      std::lock_guard<std::mutex> lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  std::size_t size() const { return parts_; }

  // Does work(0) ... work(size - 1) and waits for all.
  void run(const Work& work) {
    if (!start()) {
      for (std::size_t part = 0; part < parts_; ++part) work(part);
      return;
    }
    {
      std::lock_guard<std::mutex> lock(mutex_);
      work_ = &work;
      running_ = threads_.size();
      failure_ = nullptr;
      ++round_;
    }
    wake_.notify_all();
    do_part(0, work);
    std::unique_lock<std::mutex> lock(mutex_);
    done_.wait(lock, [this] { return running_ == 0; });
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  bool threads_here() const { return threads_.empty() || process_ == ::getpid(); }

  // Whether a thread for each part but the first is there.
  bool start() {
    if (!threads_here()) return false;
    process_ = ::getpid();
    try {
      while (threads_.size() + 1 < parts_) {
        threads_.emplace_back([this, part = threads_.size() + 1] { serve(part); });
      }
    } catch (const std::system_error&) {
    }
    return threads_.size() + 1 == parts_;
  }

  void do_part(std::size_t part, const Work& work) noexcept {
    try {
      work(part);
    } catch (...) {
      std::lock_guard<std::mutex> lock(mutex_);
      failure_ = std::current_exception();
    }
  }

  void serve(std::size_t part) {
    std::size_t seen = 0;
    for (;;) {
      const Work* work;
      {
        std::unique_lock<std::mutex> lock(mutex_);
        wake_.wait(lock, [&] { return stopping_ || round_ != seen; });
        if (stopping_) return;
        seen = round_;
        work = work_;
      }
      do_part(part, *work);
      std::lock_guard<std::mutex> lock(mutex_);
      if (--running_ == 0) done_.notify_one();
    }
  }

  std::size_t parts_;
  std::vector<std::thread> threads_;
  pid_t process_ = 0;
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  const Work* work_ = nullptr;
  std::size_t running_ = 0;
  std::size_t round_ = 0;
  std::exception_ptr failure_;
  bool stopping_ = false;
};

}  // namespace linkstream
