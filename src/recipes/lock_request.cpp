#include "latchkey/lock_request.hpp"

#include <mutex>
#include <optional>
#include <utility>

#include "base/assert.hpp"
#include "latchkey/lock.hpp"
#include "recipes/answer.hpp"
#include "recipes/hold.hpp"
#include "recipes/order.hpp"
#include "session/operations.hpp"

namespace latchkey::recipes {
namespace {

using LockAnswer = Result<std::shared_ptr<Hold>>;

Result<Lease> to_lease(const Order& order, LockAnswer answer) {
  if (!answer) return answer.error();
  return Lease(Hold::keep_session(order.recipe->host(), std::move(*answer)));
}

std::unique_ptr<Order> make_order(std::shared_ptr<const Recipe> recipe, queue::Wait wait,
                                  Deadline deadline, std::stop_token stop) {
  auto order = std::make_unique<Order>();
  order->recipe = std::move(recipe);
  order->wait = wait;
  order->deadline = deadline;
  if (stop.stop_possible()) order->stops.push_back(std::move(stop));
  return order;
}

/// What a request was made with, which it gives away once.
std::unique_ptr<Order> taken(std::unique_ptr<Order>& order) {
  LATCHKEY_DEMAND(order,
                  "LockRequest: it was sent or moved away before; ask the lock for another one");
  return std::move(order);
}

/// Why nothing need be asked of the server at all, if so.
Result<void> check(const Order& order) {
  if (auto valid = order.recipe->check(); !valid) return valid;
  for (const std::stop_token& stop : order.stops) {
    if (stop.stop_requested()) return lock_error(order.recipe->path(), Code::kCancelled, {});
  }
  if (!order.deadline.has_passed(BootClock::now())) return {};
  return lock_error(order.recipe->path(), Code::kTimedOut,
                    "which had passed before anything was asked");
}

/// Stop requests, each of which does the same. Made and destroyed outside the session's strand: a
/// callback may be on its way into it.
class Stops {
 public:
  Stops(const std::vector<std::stop_token>& tokens, const std::function<void()>& act) {
    for (const std::stop_token& token : tokens) {
      if (token.stop_possible()) callbacks_.push_back(std::make_unique<Callback>(token, act));
    }
  }

 private:
  using Callback = std::stop_callback<std::function<void()>>;
  std::vector<std::unique_ptr<Callback>> callbacks_;
};

/// A thread that waits for its answer. It is there until it has it: so whoever is with the session
/// may start the claim on its behalf. Thread safety: session strand only.
class Waiter final : public session::Host::Task {
 public:
  explicit Waiter(const Order& order) : order_(order) {}

  void run(session::Machine& machine, Instant) noexcept override {
    const auto hold = Hold::begin(*order_.recipe, machine, order_.wait, order_.deadline,
                                  [this](LockAnswer result) { slot_.set(std::move(result)); });
    // With its answer the thread may have gone on, and we with it.
    if (hold->is_waiting()) hold_ = hold;
  }
  void cancel() {
    if (const auto hold = hold_.lock()) hold->cancel(Code::kCancelled);
  }
  [[nodiscard]] base::Slot<LockAnswer>& slot() { return slot_; }

 private:
  const Order& order_;
  base::Slot<LockAnswer> slot_;
  std::weak_ptr<Hold> hold_;
};

/// A request on its way whose answer goes to an executor. Thread safety: any thread.
class Delivery : public std::enable_shared_from_this<Delivery> {
 public:
  static std::shared_ptr<Delivery> begin(std::unique_ptr<Order> order,
                                         LockRequest::Handler handler) {
    auto delivery = std::make_shared<Delivery>(std::move(order), std::move(handler));
    delivery->start();
    return delivery;
  }

  Delivery(std::unique_ptr<Order> order, LockRequest::Handler handler)
      : order_(std::move(order)), handler_(std::move(handler)) {}

  void cancel() {
    if (host().is_forked()) return;
    host().enter([this](session::Machine&, Instant) {
      cancelled_ = true;
      if (const auto hold = hold_.lock()) hold->cancel(Code::kCancelled);
    });
  }

 private:
  [[nodiscard]] session::Host& host() const { return *order_->recipe->host(); }

  void start() {
    Result<void> allowed = check(*order_);
    // In a forked child nothing works but the calling thread.
    if (host().is_forked()) return handler_(session::check_blocking(host(), "lock").error());
    stops_.emplace(order_->stops, [weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->cancel();
    });
    host().enter([&](session::Machine& machine, Instant) {
      if (!allowed) return answer(allowed.error());
      const auto hold =
          Hold::begin(*order_->recipe, machine, order_->wait, order_->deadline,
                      [self = shared_from_this()](LockAnswer result) { self->answer(result); });
      hold_ = hold;
      if (cancelled_) hold->cancel(Code::kCancelled);
    });
  }

  /// Session strand only.
  void answer(LockAnswer result) {
    // A Lease from here on: should nobody ever run the task, it lets go.
    auto lease = std::make_shared<Result<Lease>>(to_lease(*order_, std::move(result)));
    host().post([self = shared_from_this(), lease = std::move(lease)] { self->deliver(lease); });
  }

  void deliver(const std::shared_ptr<Result<Lease>>& lease) {
    stops_.reset();
    if (!order_->executor) return hand(*lease);
    // Whoever gets the answer may destroy what the executor stands on, so it must not come before
    // the executor's call has returned; unless it runs tasks at once, on this thread.
    const std::lock_guard until_handed_over(handing_over_);
    order_->executor([self = shared_from_this(), lease] {
      { const std::lock_guard handed_over(self->handing_over_); }
      self->hand(*lease);
    });
  }

  /// An exception would reach whoever called the executor, who has others' answers to bring too.
  void hand(Result<Lease>& lease) {
    host().guard()->run("lock request", [&] { handler_(std::move(lease)); });
  }

  const std::unique_ptr<Order> order_;
  const LockRequest::Handler handler_;
  std::optional<Stops> stops_;
  std::weak_ptr<Hold> hold_;
  bool cancelled_ = false;
  std::recursive_mutex handing_over_;
};

}  // namespace

/// A coroutine that waits for a lock, and the answer on its way to it. Thread safety: any thread.
class Suspension : public std::enable_shared_from_this<Suspension> {
 public:
  explicit Suspension(std::coroutine_handle<> waiting) : waiting_(waiting) {}

  void begin(std::unique_ptr<Order> order) {
    auto delivery = Delivery::begin(std::move(order), [self = shared_from_this()](auto answer) {
      self->resume(std::move(answer));
    });
    {
      const std::lock_guard lock(mutex_);
      if (answered_) return;
      delivery_ = delivery;
      if (waiting_) return;
    }
    delivery->cancel();  // It was destroyed before we could start.
  }

  /// The coroutine is being destroyed.
  void abandon() {
    std::shared_ptr<Delivery> delivery;
    {
      const std::lock_guard lock(mutex_);
      waiting_ = nullptr;
      delivery = delivery_.lock();
    }
    if (delivery) delivery->cancel();
  }

  [[nodiscard]] Result<Lease> take() { return std::move(*answer_); }

 private:
  void resume(Result<Lease> answer) {
    std::coroutine_handle<> waiting;
    {
      const std::lock_guard lock(mutex_);
      answered_ = true;
      delivery_.reset();
      waiting = std::exchange(waiting_, nullptr);
      if (waiting) answer_.emplace(std::move(answer));
    }
    if (waiting) waiting.resume();  // It takes the answer; otherwise the lease ends here.
  }

  std::mutex mutex_;
  std::coroutine_handle<> waiting_;
  std::weak_ptr<Delivery> delivery_;  ///< What brings it keeps itself.
  bool answered_ = false;
  std::optional<Result<Lease>> answer_;
};

}  // namespace latchkey::recipes

namespace latchkey::inline v0 {

using recipes::Order;

LockRequest::LockRequest(std::unique_ptr<Order> order) noexcept : order_(std::move(order)) {}
LockRequest::LockRequest(LockRequest&&) noexcept = default;
LockRequest& LockRequest::operator=(LockRequest&&) noexcept = default;
LockRequest::~LockRequest() = default;

LockRequest LockRequest::on(Executor executor) && {
  LockRequest request(recipes::taken(order_));
  request.order_->executor = std::move(executor);
  return request;
}

LockRequest LockRequest::stopped_by(std::stop_token stop) && {
  LockRequest request(recipes::taken(order_));
  request.order_->stops.push_back(std::move(stop));
  return request;
}

Result<Lease> LockRequest::wait() && {
  const auto order = recipes::taken(order_);
  const auto& host = order->recipe->host();
  if (auto allowed = recipes::check(*order); !allowed) return allowed.error();
  if (auto allowed = session::check_blocking(*host, "lock " + order->recipe->path()); !allowed) {
    return allowed.error();
  }
  recipes::Waiter waiter(*order);
  host->leave(waiter);
  const recipes::Stops stops(order->stops, [&] {
    if (host->is_forked()) return;
    host->enter([&](session::Machine&, Instant) { waiter.cancel(); });
  });
  return recipes::to_lease(*order, session::wait_for(*host, waiter.slot(), order->deadline));
}

void LockRequest::then(Handler handler) && {
  recipes::Delivery::begin(recipes::taken(order_), std::move(handler));
}

std::future<Result<Lease>> LockRequest::future() && {
  auto promise = std::make_shared<std::promise<Result<Lease>>>();
  auto future = promise->get_future();
  std::move(*this).then([promise](Result<Lease> answer) { promise->set_value(std::move(answer)); });
  return future;
}

LockRequest::Awaiter LockRequest::operator co_await() && { return Awaiter(recipes::taken(order_)); }

LockRequest::Awaiter::Awaiter(std::unique_ptr<Order> order) noexcept : order_(std::move(order)) {}

LockRequest::Awaiter::~Awaiter() {
  if (suspension_) suspension_->abandon();
}

void LockRequest::Awaiter::await_suspend(std::coroutine_handle<> waiting) {
  suspension_ = std::make_shared<recipes::Suspension>(waiting);
  // Once it has begun the coroutine may go on elsewhere, and this object be gone.
  const auto suspension = suspension_;
  suspension->begin(std::move(order_));
}

Result<Lease> LockRequest::Awaiter::await_resume() {
  return std::exchange(suspension_, nullptr)->take();
}

Lock::Lock(std::shared_ptr<const recipes::Recipe> recipe) noexcept : recipe_(std::move(recipe)) {}
Lock::Lock(const Lock&) = default;
Lock::Lock(Lock&&) noexcept = default;
Lock& Lock::operator=(const Lock&) = default;
Lock& Lock::operator=(Lock&&) noexcept = default;
Lock::~Lock() = default;

LockRequest Lock::lock_async(Deadline deadline, std::stop_token stop) const {
  LATCHKEY_DEMAND(recipe_, "Lock::lock(): the lock was moved away");
  return LockRequest(recipes::make_order(recipe_, queue::Wait::kYes, deadline, std::move(stop)));
}

LockRequest Lock::try_lock_async(Deadline deadline, std::stop_token stop) const {
  LATCHKEY_DEMAND(recipe_, "Lock::try_lock(): the lock was moved away");
  return LockRequest(recipes::make_order(recipe_, queue::Wait::kNo, deadline, std::move(stop)));
}

const std::string& Lock::path() const noexcept {
  LATCHKEY_DEMAND(recipe_, "Lock::path(): the lock was moved away");
  return recipe_->path();
}

}  // namespace latchkey::inline v0
