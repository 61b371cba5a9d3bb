// Just enough of gloo's declarations for torch's ProcessGroupGloo.hpp to compile: the torch wheel contains
// gloo but not its headers. Only torch/gloo_backend.cc may see this folder, and it never makes, derives from
// or calls one of these classes: their layouts here are not the real ones. tests/test_gloo_symbols.py holds
// that.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace gloo {

class Context {
 public:
  void setTimeout(std::chrono::milliseconds timeout);
  std::chrono::milliseconds getTimeout() const;
};

namespace transport {
class Device;
class UnboundBuffer {
 public:
  virtual ~UnboundBuffer() = 0;
};
}  // namespace transport

namespace rendezvous {
class Store {
 public:
  virtual ~Store();
  virtual void set(const std::string& key, const std::vector<char>& data) = 0;
  virtual std::vector<char> get(const std::string& key) = 0;
  virtual void wait(const std::vector<std::string>& keys) = 0;
  virtual void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout) = 0;
};
}  // namespace rendezvous

}  // namespace gloo
