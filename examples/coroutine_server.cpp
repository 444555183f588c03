// A server of one thread in which every request takes a lock by co_await: no thread waits for
// anything. Each line a client sends names an account; the server "books" on it under the account's
// lock and answers with the token it booked with. Requests for different accounts run side by side,
// those for one account one after the other, over all servers that do the same.
//
//     latchkey_example_coroutine_server PORT [CONNECT]
//     printf 'alice\nbob\n' | nc localhost PORT
#include <iostream>
#include <string>
#include <thread>

#include <asio.hpp>

#include "latchkey/asio.hpp"
#include "latchkey/mutex.hpp"

using namespace latchkey;
using namespace std::chrono_literals;
using asio::ip::tcp;

namespace {

asio::awaitable<std::string> book(const Session& session, const std::string& account) {
  const Mutex mutex(session, "/accounts/" + account);
  auto lease = co_await async_wait(mutex.lock_async(deadline_in(10s)), asio::use_awaitable);
  if (!lease) co_return std::string(name(lease.error().code())) + ": " + lease.error().message();

  // The booking itself; a real one would hand the token to the database.
  asio::steady_timer work(co_await asio::this_coro::executor, 10ms);
  co_await work.async_wait(asio::use_awaitable);
  if (lease->state() == LeaseState::kLost) co_return "lost while booking";
  co_return "booked on " + account + ", token " + to_string(lease->token());
}

asio::awaitable<void> serve(tcp::socket socket, Session session) {
  std::string buffer;
  while (true) {
    const auto size = co_await asio::async_read_until(socket, asio::dynamic_buffer(buffer, 4096),
                                                      '\n', asio::use_awaitable);
    const std::string account = buffer.substr(0, size - 1);
    buffer.erase(0, size);
    const std::string answer = co_await book(session, account) + "\n";
    co_await asio::async_write(socket, asio::buffer(answer), asio::use_awaitable);
  }
}

asio::awaitable<void> listen(tcp::acceptor acceptor, Session session) {
  const auto until_it_hangs_up = [](std::exception_ptr) {};
  while (true) {
    tcp::socket socket = co_await acceptor.async_accept(asio::use_awaitable);
    asio::co_spawn(acceptor.get_executor(), serve(std::move(socket), session), until_it_hangs_up);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: " << argv[0] << " PORT [CONNECT]\n";
    return 64;
  }
  asio::io_context context;
  // Sockets and timers of the session live on the same thread as everything else.
  auto session = start(context, argc > 2 ? argv[2] : "127.0.0.1:2181");
  if (!session) {
    std::cerr << session.error() << '\n';
    return 1;
  }
  const auto port = static_cast<unsigned short>(std::stoi(argv[1]));
  tcp::acceptor acceptor(context, {asio::ip::make_address("127.0.0.1"), port});
  std::cout << "listening on " << acceptor.local_endpoint() << std::endl;

  asio::signal_set signals(context, SIGINT, SIGTERM);
  signals.async_wait([&](auto, int) { context.stop(); });
  asio::co_spawn(context, listen(std::move(acceptor), *session), asio::detached);
  context.run();

  // The session lives on the context: let it say goodbye before the context goes.
  context.restart();
  std::jthread goodbye([&] { static_cast<void>(session->close(deadline_in(2s))); });
  context.run_for(2s);
  return 0;
}
