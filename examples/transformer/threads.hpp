#pragma once
// A fork-join pool. run(n, f) calls f(0) .. f(n - 1) once each, in any order and on any thread, and returns
// when all are done. What a task computes may not depend on who runs it; then neither does the result.

#include <Eigen/Core>

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "posenc/core/scalar.hpp"

namespace transformer {

class Threads {
 public:
  /// `count` threads in all, the caller's included. Throws std::invalid_argument for less than one.
  explicit Threads(int count) {
    if (count < 1) throw std::invalid_argument("threads: expected at least 1, got " + std::to_string(count));
    Eigen::setNbThreads(1);  // a program built with -fopenmp would split products on its own otherwise
    for (int t = 1; t < count; ++t) workers_.emplace_back([this] { work(); });
  }
  ~Threads() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  int count() const { return static_cast<int>(workers_.size()) + 1; }

  /// Where tasks throw, the exception of the lowest task is thrown here, after all have ended.
  void run(posenc::Index tasks, const std::function<void(posenc::Index)>& task) {
    std::unique_lock lock(mutex_);
    task_ = &task, next_ = 0, tasks_ = tasks, unfinished_ = tasks, failed_ = tasks, failure_ = nullptr;
    wake_.notify_all();
    drain(lock);
    done_.wait(lock, [this] { return unfinished_ == 0; });
    task_ = nullptr;
    if (failure_ != nullptr) std::rethrow_exception(failure_);
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [this] { return stop_ || (task_ != nullptr && next_ < tasks_); });
      if (stop_) return;
      drain(lock);
    }
  }

  // Takes tasks until there are none left. The lock is held but for the tasks themselves.
  void drain(std::unique_lock<std::mutex>& lock) {
    while (task_ != nullptr && next_ < tasks_) {
      const posenc::Index mine = next_++;
      const auto& task = *task_;
      lock.unlock();
      std::exception_ptr thrown;
      try {
        task(mine);
      } catch (...) {
        thrown = std::current_exception();
      }
      lock.lock();
      if (thrown != nullptr && mine < failed_) failed_ = mine, failure_ = thrown;
      if (--unfinished_ == 0) done_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_, done_;
  const std::function<void(posenc::Index)>* task_ = nullptr;
  posenc::Index next_ = 0, tasks_ = 0, unfinished_ = 0, failed_ = 0;
  std::exception_ptr failure_;
  bool stop_ = false;
  std::vector<std::thread> workers_;
};

}  // namespace transformer
