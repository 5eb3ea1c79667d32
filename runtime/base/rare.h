// Rare: a value that is nearly always the default one of its type, which then takes the room of a pointer.
#pragma once

#include <memory>
#include <utility>

namespace heddle {

// Reads as a `const T`; edit() gives it a T of its own. Copies are deep. As thread-safe as a T.
template <class T>
class Rare {
 public:
  Rare() noexcept = default;
  Rare(T value) : own_(std::make_unique<T>(std::move(value))) {}  // NOLINT: implicit on purpose
  Rare(const Rare& other) : own_(other.own_ ? std::make_unique<T>(*other.own_) : nullptr) {}
  Rare(Rare&&) noexcept = default;
  Rare& operator=(const Rare& other) {
    if (this != &other) own_ = other.own_ ? std::make_unique<T>(*other.own_) : nullptr;
    return *this;
  }
  Rare& operator=(Rare&&) noexcept = default;
  ~Rare() = default;

  const T& operator*() const noexcept { return own_ ? *own_ : none(); }
  const T* operator->() const noexcept { return &**this; }
  T& edit() {
    if (!own_) own_ = std::make_unique<T>();
    return *own_;
  }
  // Makes it the default value again.
  void reset() noexcept { own_.reset(); }
  friend bool operator==(const Rare& a, const Rare& b) { return a.own_ == b.own_ || *a == *b; }

 private:
  static const T& none() noexcept {
    static const T value{};
    return value;
  }
  std::unique_ptr<T> own_;
};

}  // namespace heddle
