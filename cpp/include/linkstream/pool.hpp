// What: a few threads that wait for work. Results never depend on the number of threads.
// Python twin: none; the reference engine uses one thread.
// Invariants: `run` returns when all threads that took part are done, and rethrows their exception. It
//   does not wait for a thread that wakes too late, because on a busy machine that takes longer than
//   the work. If threads cannot be started (a limit of the system, or a forked process), the caller
//   does all the work.
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

  explicit Pool(std::size_t size) : size_(size < 1 ? 1 : size) {}
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  ~Pool() {
    if (!threads_here()) {
      for (std::thread& thread : threads_) thread.detach();  // they run in another process
      return;
    }
    {
      std::lock_guard<std::mutex> lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  std::size_t size() const { return size_; }

  // Calls work(0) here and work(1) ... work(size - 1) in the threads that wake in time; the calls
  // divide the work among themselves.
  void run(const Work& work) {
    start();
    {
      std::lock_guard<std::mutex> lock(mutex_);
      work_ = &work;
      failure_ = nullptr;
      ++round_;
    }
    wake_.notify_all();
    take_part(0, work);
    std::unique_lock<std::mutex> lock(mutex_);
    work_ = nullptr;  // a thread that wakes now is too late
    done_.wait(lock, [this] { return working_ == 0; });
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  bool threads_here() const { return threads_.empty() || process_ == ::getpid(); }

  void start() {
    if (!threads_here() || threads_.size() + 1 == size_) return;
    process_ = ::getpid();
    try {
      while (threads_.size() + 1 < size_) {
        threads_.emplace_back([this, part = threads_.size() + 1] { serve(part); });
      }
    } catch (const std::system_error&) {
      size_ = threads_.size() + 1;  // the threads that the system allowed
    }
  }

  void take_part(std::size_t part, const Work& work) noexcept {
    try {
      work(part);
    } catch (...) {
      std::lock_guard<std::mutex> lock(mutex_);
      failure_ = std::current_exception();
    }
  }

  void serve(std::size_t part) {
    std::size_t seen = 0;
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      wake_.wait(lock, [&] { return stopping_ || round_ != seen; });
      if (stopping_) return;
      seen = round_;
      if (!work_) continue;
      const Work& work = *work_;
      ++working_;
      lock.unlock();
      take_part(part, work);
      lock.lock();
      if (--working_ == 0) done_.notify_one();
    }
  }

  std::size_t size_;
  std::vector<std::thread> threads_;
  pid_t process_ = 0;
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  const Work* work_ = nullptr;
  std::size_t working_ = 0;
  std::size_t round_ = 0;
  std::exception_ptr failure_;
  bool stopping_ = false;
};

}  // namespace linkstream
