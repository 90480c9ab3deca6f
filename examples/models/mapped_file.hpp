#pragma once
// A file as a range of bytes in memory: mapped read-only (POSIX mmap), so opening a model copies nothing and
// pages are read as they are touched. A reader that copies what it needs may let go of the file afterwards.
//
// The size is that at the time of opening. A file that another program cuts short while it is mapped ends
// this one with SIGBUS, as it does for everybody who maps files; replace a model by renaming a new file over
// it.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "models/error.hpp"

namespace models {

using Bytes = std::span<const unsigned char>;

class MappedFile {
 public:
  static constexpr std::uint64_t most_bytes = std::uint64_t{1} << 30;

  /// Throws an InputError for anything but a regular file of at most 1 GiB that can be read.
  explicit MappedFile(const std::string& path) : path_(path) {
    // O_NONBLOCK: a FIFO must be refused, not waited for.
    const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
    struct stat status = {};
    if (file.number < 0 || ::fstat(file.number, &status) != 0 || !S_ISREG(status.st_mode))
      throw InputError(path + ": not a file that can be read");
    if (static_cast<std::uint64_t>(status.st_size) > most_bytes)
      throw InputError(path + ": larger than 1 GiB, too large for a model of this program");
    size_ = static_cast<std::size_t>(status.st_size);
    if (size_ == 0) return;  // nothing can be mapped of an empty file
    void* const start = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.number, 0);
    if (start == MAP_FAILED) throw InputError(path + ": cannot be read");
    start_ = static_cast<const unsigned char*>(start);
  }
  ~MappedFile() {
    if (start_ != nullptr) ::munmap(const_cast<unsigned char*>(start_), size_);
  }
  MappedFile(MappedFile&& other) noexcept
      : path_(std::move(other.path_)),
        start_(std::exchange(other.start_, nullptr)),
        size_(std::exchange(other.size_, 0)) {}
  MappedFile& operator=(MappedFile&& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(start_, other.start_);
    std::swap(size_, other.size_);
    return *this;
  }

  const std::string& path() const { return path_; }
  Bytes bytes() const { return {start_, size_}; }

 private:
  struct Descriptor {
    ~Descriptor() {
      if (number >= 0) ::close(number);
    }
    int number;
  };

  std::string path_;
  const unsigned char* start_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace models
