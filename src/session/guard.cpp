#include "session/guard.hpp"

#include <cstdio>

namespace latchkey::session {

std::string text_of(std::string_view what, const std::exception_ptr& thrown) {
  std::string text = "a callback has thrown (" + std::string(what) + "): ";
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& error) {
    text += error.what();
  } catch (...) {
    text += "not a std::exception";
  }
  return text;
}

namespace {

void print(const std::string& text) noexcept {
  std::fprintf(stderr, "latchkey: %s\n", text.c_str());
}

}  // namespace

Guard::Guard(const SessionOptions& options, InOrder in_order)
    : log_(options.log), on_exception_(options.on_exception), in_order_(std::move(in_order)) {}

void Guard::tell(std::string_view what, const std::exception_ptr& thrown) const noexcept {
  try {
    const std::string text = text_of(what, thrown);
    if (!log_ && !on_exception_) return print(text);
    in_order_([self = shared_from_this(), name = std::string(what), thrown, text] {
      // What these two throw in turn has nowhere else to go.
      const auto attempt = [&text](const char* hook, const auto& code) {
        try {
          code();
        } catch (...) {
          print(text);
          print(text_of(hook, std::current_exception()));
        }
      };
      attempt("log", [&] {
        if (self->log_) self->log_(LogLevel::kError, text);
      });
      attempt("on_exception", [&] {
        if (self->on_exception_) self->on_exception_(name, thrown);
      });
    });
  } catch (...) {
    print("a callback has thrown, and there is no memory to say what");
  }
}

}  // namespace latchkey::session
