// What: a few threads that wait for work. Results never depend on how many there are.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace linkstream {

class Pool {
 public:
  explicit Pool(std::size_t threads) : size_(threads < 1 ? 1 : threads) {}
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  ~Pool() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  std::size_t size() const { return size_; }

  // Runs work(0) ... work(size - 1), the first on the calling thread, and waits for all.
  void run(const std::function<void(std::size_t)>& work) {
    if (size_ == 1) return work(0);
    start();
    {
      std::lock_guard<std::mutex> lock(mutex_);
      work_ = &work;
      running_ = size_ - 1;
      ++round_;
    }
    wake_.notify_all();
    work(0);
    std::unique_lock<std::mutex> lock(mutex_);
    done_.wait(lock, [this] { return running_ == 0; });
    work_ = nullptr;
  }

 private:
  void start() {
    while (threads_.size() + 1 < size_) {
      threads_.emplace_back([this, index = threads_.size() + 1] { serve(index); });
    }
  }

  void serve(std::size_t index) {
    std::size_t seen = 0;
    for (;;) {
      const std::function<void(std::size_t)>* work;
      {
        std::unique_lock<std::mutex> lock(mutex_);
        wake_.wait(lock, [&] { return stopping_ || round_ != seen; });
        if (stopping_) return;
        seen = round_;
        work = work_;
      }
      (*work)(index);
      {
        std::lock_guard<std::mutex> lock(mutex_);
        --running_;
      }
      done_.notify_one();
    }
  }

  std::size_t size_;
  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  const std::function<void(std::size_t)>* work_ = nullptr;
  std::size_t running_ = 0;
  std::size_t round_ = 0;
  bool stopping_ = false;
};

}  // namespace linkstream
